"""The rules on brokers, producer ids and features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kraftlake.image.configurations_image import BROKER_RESOURCE, ConfigResource
from kraftlake.image.features_image import ELR_VERSION, METADATA_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.records.metadata_records import ConfigRecord, ProducerIdsRecord, RegisterBrokerRecord
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.replay.spec.known_bugs import EPOCH_OF_SAME_PROCESS, KnownBug
from kraftlake.runtime.words import in_words

BLOCK_SIZE = 1_000
"""The number of producer ids in a block. Source: org.apache.kafka.server.common.ProducerIdsBlock."""


class ClusterRuling(NamedTuple):
    """A property that was judged on a thing: what violates it, None for nothing, and the bug that it may show."""

    name: str
    thing: str
    fault: str | None
    bug: KnownBug | None = None


def change_rulings(change: OtherChange, first_offset: int) -> Iterator[ClusterRuling]:
    """The rulings on the records of one offset, of a batch that begins at `first_offset` or later."""
    before = change.change.image
    for message in change.messages:
        if isinstance(message, RegisterBrokerRecord):
            yield from _registration(message, before, change.offset, first_offset)
        elif isinstance(message, ProducerIdsRecord):
            yield _producer_ids(message, before)


def changes_state(change: OtherChange) -> bool:
    """Whether a change is of what `state_rulings` judges."""
    delta = change.change
    return delta.features_delta is not None or delta.cluster_delta is not None or changes_min_isr(change)


def changes_min_isr(change: OtherChange) -> bool:
    """Whether a change is of the `min.insync.replicas` of anything."""
    return any(isinstance(message, ConfigRecord) and message.name == MIN_ISR for message in change.messages)


def state_rulings(image: MetadataImage) -> Iterator[ClusterRuling]:
    """The rulings on the features of an image, and the brokers that support them."""
    features, configs = image.features, image.configs
    version = features.metadata_version
    levels = {**features.finalized_versions, **({} if version is None else {METADATA_VERSION: version.level})}
    for name, level in sorted(levels.items()):
        behind = [
            broker.id
            for broker in image.cluster.brokers.values()
            if (range_ := broker.supported_features.get(name)) is not None and not range_.min <= level <= range_.max
        ]
        who = f"broker{'s' if len(behind) > 1 else ''} {in_words([*map(str, sorted(behind))])}"
        fault = f"{name} is {level}, which {who} can't" if behind else None
        yield ClusterRuling("features_supported", f"feature {name}", fault)
    if not features.is_elr_enabled:
        return
    is_new = version is not None and version.is_elr_supported
    fault = None if is_new else f"{ELR_VERSION} is on at metadata.version {version}"
    yield ClusterRuling("elr_needs_version", f"feature {ELR_VERSION}", fault)
    own = [
        resource.name
        for resource in configs.resource_data
        if resource.type == BROKER_RESOURCE and resource.name and MIN_ISR in configs.config_map(resource)
    ]
    fault = None
    if MIN_ISR not in configs.config_map(ConfigResource(BROKER_RESOURCE, "")):
        fault = f"the cluster has no {MIN_ISR}"
    elif own:
        fault = f"broker {in_words(sorted(own))} has its own {MIN_ISR}"
    yield ClusterRuling("elr_needs_min_isr", f"feature {ELR_VERSION}", fault)


def _registration(
    record: RegisterBrokerRecord, before: MetadataImage, offset: int, first_offset: int
) -> Iterator[ClusterRuling]:
    thing, known = f"broker {record.broker_id}", before.cluster.brokers.get(record.broker_id)
    is_new = known is None or known.incarnation_id != record.incarnation_id
    fault, bug = None, None
    if known is not None and not is_new:
        fault = f"its epoch is {record.broker_epoch}, not {known.epoch}" if record.broker_epoch != known.epoch else None
        bug = EPOCH_OF_SAME_PROCESS if first_offset <= record.broker_epoch <= offset else None
    elif not first_offset <= record.broker_epoch <= offset:
        fault = f"its epoch is {record.broker_epoch}, and its batch has offsets {first_offset} to {offset}"
    elif known is not None and record.broker_epoch <= known.epoch:
        fault = f"its epoch is {record.broker_epoch}, after {known.epoch}"
    yield ClusterRuling("broker_epoch_is_offset", thing, fault, bug)
    if is_new and not record.is_migrating_zk_broker:
        fault = None if record.fenced else f"incarnation {record.incarnation_id} is in service from its first record on"
        yield ClusterRuling("broker_starts_fenced", thing, fault)
    if record.log_dirs:
        others = [
            broker.id
            for broker in before.cluster.brokers.values()
            if broker.id != record.broker_id and set(broker.directories) & set(record.log_dirs)
        ]
        fault = f"broker {min(others)} has registered one of its log directories" if others else None
        yield ClusterRuling("directory_of_one_broker", thing, fault)


def _producer_ids(record: ProducerIdsRecord, before: MetadataImage) -> ClusterRuling:
    thing, last = "producer ids", before.producer_ids.next_producer_id
    broker = before.cluster.brokers.get(record.broker_id)
    fault = None
    if last >= 0 and record.next_producer_id != last + BLOCK_SIZE:
        fault = f"the next block begins with {record.next_producer_id}, after {last}"
    elif record.broker_id >= 0 and (broker is None or broker.epoch != record.broker_epoch):
        fault = f"the block goes to broker {record.broker_id} of epoch {record.broker_epoch}, which is not registered"
    return ClusterRuling("producer_id_blocks", thing, fault)
