"""The topics of an image at one glance, held against its JSON form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics_overview import overview_of, topics_hosted, unhealthy_topics
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import histories


def image_of_history(records: list[ApiMessageAndVersion]) -> MetadataImage:
    delta = MetadataDelta(MetadataImage.EMPTY)
    for record in records:
        delta.replay(record.message)
    return delta.apply(MetadataProvenance(offset=len(records), epoch=1))


def min_isr_config(kind: int, name: str, value: int) -> ApiMessageAndVersion:
    record = ConfigRecord(resource_type=kind, resource_name=name, name="min.insync.replicas", value=str(value))
    return ApiMessageAndVersion(record, 0)


def is_offline(partition: dict[str, Any]) -> bool:
    return bool(partition["leader"] == -1)


def is_under_replicated(partition: dict[str, Any]) -> bool:
    return len(partition["isr"]) < len(partition["replicas"])


TROUBLES: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "unavailable": lambda one, _: is_offline(one),
    "under-replicated": lambda one, _: is_under_replicated(one),
    "under-min-isr": lambda one, min_isr: is_offline(one) or len(one["isr"]) < min_isr,
    "at-min-isr": lambda one, min_isr: len(one["isr"]) == min_isr,
}


def of(topics: dict[str, Any], wanted: Any) -> set[str]:
    return {name for name, topic in topics.items() if any(map(wanted, topic["partitions"].values()))}


@given(histories(min_steps=10, topics_only=True), st.integers(0, 4))
def test_an_overview_is_what_the_topics_one_by_one_say(history: Any, limit: int) -> None:
    image: MetadataImage = image_of_history(history)
    topics = image_to_json(image)["topics"]
    partitions = [one for topic in topics.values() for one in topic["partitions"].values()]
    overview = overview_of(image.topics.rows(), limit)
    assert (overview.topic_count, overview.partition_count) == (len(topics), len(partitions))
    assert overview.health == (
        sum(map(is_offline, partitions)),
        sum(is_under_replicated(one) and not is_offline(one) for one in partitions),
        sum(bool(one["addingReplicas"] or one["removingReplicas"]) for one in partitions),
        sum(one["leaderRecoveryState"] != 0 for one in partitions),
    )
    offline, under = of(topics, is_offline), of(topics, is_under_replicated)
    worst = sorted(topics, key=lambda name: (name not in offline, name not in under, name))
    assert overview.worst == tuple(worst[:limit])


@given(
    histories(min_steps=10, topics_only=True),
    st.sets(st.sampled_from(sorted(TROUBLES))),
    st.integers(1, 4),
    st.integers(0, 4),
    st.data(),
)
def test_unhealthy_topics_are_found(history: Any, kinds: set[str], default: int, own: int, data: st.DataObject) -> None:
    names = sorted(image_of_history(history).topics.topics_by_name())
    configured = data.draw(st.sets(st.sampled_from(names))) if names else set()
    configs = [min_isr_config(TOPIC_RESOURCE, name, own) for name in sorted(configured)]
    image = image_of_history([*history, min_isr_config(BROKER_RESOURCE, "", default), *configs])
    expected = {
        name
        for name, topic in image_to_json(image)["topics"].items()
        for partition in topic["partitions"].values()
        if any(TROUBLES[kind](partition, own if name in configured else default) for kind in kinds)
    }
    assert unhealthy_topics(image, kinds) == expected


@given(histories(min_steps=10, topics_only=True), st.integers(0, 8))
def test_no_topic_that_a_broker_hosts_is_left_out(history: Any, broker: int) -> None:
    image = image_of_history(history)
    topics = image_to_json(image)["topics"]
    assert of(topics, lambda one: broker in one["replicas"]) <= topics_hosted(image.topics.rows(), broker)
