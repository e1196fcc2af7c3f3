"""The image to restore: the cluster at an offset, with the changes that the brokers' present state requires."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import attrs
from rpds import HashTrieMap

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.restore.broker_facts import BrokerFacts
from kraftlake.replay.restore.restored_partition import MAX_EPOCH, in_sync_replicas, restored_partition
from kraftlake.runtime.errors import UnwritableMetadataError

CRASHED: Final = -1
"""The broker epoch that a broker states when it registers after an unclean shutdown."""


@attrs.frozen(kw_only=True)
class RestoredPartitions:
    """Names of partitions that were not restored as they were at the offset, by the kind of deviation.

    `moved` come back as reassignments from the replicas that have their records; `lacking` had in-sync replicas
    whose logs lack records; `unseen` have in-sync replicas whose logs were not shown, though others' were; `missing`
    have no log in any directory, though all directories of an in-sync replica were shown; `leaderless` have no replica
    that is known to have all records.
    """

    moved: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    leaderless: tuple[str, ...] = ()


def restored_image(
    at: MetadataImage,
    newest: MetadataImage,
    facts: BrokerFacts,
    *,
    provenance: MetadataProvenance,
    voters: Collection[int],
    margin: int,
) -> tuple[MetadataImage, RestoredPartitions]:
    """The image to restore from the one `at` an offset, where `newest` is the newest known one.

    Brokers are fenced until they register anew, controllers other than `voters` are left out, partitions are those of
    `restored_partition`, the next block of producer ids begins `margin` above the highest that is known. Everything
    else is unchanged. Raises UnwritableMetadataError for an epoch that exceeds Kafka's 32 bits.
    """
    topics, special = _topics(at.topics, newest.topics, facts, margin=margin)
    controllers = HashTrieMap({id_: one for id_, one in at.cluster.controllers.items() if id_ in voters})
    next_producer_id = max(0, at.producer_ids.next_producer_id, newest.producer_ids.next_producer_id) + margin
    image = attrs.evolve(
        at,
        provenance=provenance,
        cluster=ClusterImage(brokers=_brokers(at, newest, facts), controllers=controllers),
        topics=topics,
        producer_ids=ProducerIdsImage(next_producer_id=next_producer_id),
    )
    return image, special


def _brokers(at: MetadataImage, newest: MetadataImage, facts: BrokerFacts) -> HashTrieMap[int, BrokerRegistration]:
    """The registrations at the offset, and those of brokers that came later, fenced.

    A controller assumes that a registering broker's disk lost records unless the broker states the epoch of its
    registration, and then removes the broker from ISRs (KIP-966). The broker states the epoch of its clean shutdown,
    else none; where its directories were given, that epoch is known, and its logs were examined.
    """
    later = {
        # features of the newest metadata.version may be more than the one at the offset can express
        id_: attrs.evolve(broker, directories=(), cordoned_directories=None)
        for id_, broker in newest.cluster.brokers.items()
    }
    restored = {}
    for id_, broker in (later | dict(at.cluster.brokers.items())).items():
        known = newest.cluster.brokers.get(id_, broker)
        epoch = known.epoch
        if id_ in facts.clean_epochs:
            clean = facts.clean_epochs[id_]
            epoch = CRASHED if clean is None else clean
        restored[id_] = attrs.evolve(broker, epoch=epoch, fenced=True, in_controlled_shutdown=False)
    return HashTrieMap(restored)


def _topics(
    at: TopicsImage, newest: TopicsImage, facts: BrokerFacts, *, margin: int
) -> tuple[TopicsImage, RestoredPartitions]:
    topics: dict[Uuid, TopicImage] = {}
    special: dict[str, list[str]] = {field.name: [] for field in attrs.fields(RestoredPartitions)}
    for topic_id, topic in at.topics_by_id().items():
        known = newest.get_topic_by_id(topic_id)
        topics[topic_id] = _topic(topic, known, facts, special, margin=margin)
    named = {kind: tuple(sorted(names)) for kind, names in special.items()}
    return TopicsImage.EMPTY.changed({}, topics), RestoredPartitions(**named)


def _topic(
    topic: TopicImage,
    known: TopicImage | None,
    facts: BrokerFacts,
    special: Mapping[str, list[str]],
    *,
    margin: int,
) -> TopicImage:
    partitions = {}
    for number, at in topic.partitions.items():
        name = f"{topic.name}-{number}"
        newest = None if known is None else known.partitions.get(number)
        found = facts.of_partition(topic.id, number)
        in_sync = in_sync_replicas(newest or at, found, facts.complete)
        made = restored_partition(at, newest, found, in_sync, margin=margin)
        if max(made.leader_epoch, made.partition_epoch) > MAX_EPOCH:
            raise UnwritableMetadataError(
                f"The epochs of {name} would exceed Kafka's 32 bits with {margin:,} added: give a smaller --margin."
            )
        partitions[number] = made
        for kind, is_so in (
            ("moved", bool(made.isr) and not set(made.isr) & set(at.replicas)),
            ("lacking", bool(in_sync.lacking)),
            ("unseen", bool(in_sync.unseen)),
            ("missing", bool(in_sync.missing)),
            ("leaderless", not made.isr),
        ):
            if is_so:
                special[kind].append(name)
    return TopicImage(name=topic.name, id=topic.id, partitions=HashTrieMap(partitions))
