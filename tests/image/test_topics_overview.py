"""The topics of an image at one glance, held against its JSON form."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.image.json_form import image_to_json
from kraftlake.image.topics_overview import overview_of, topics_hosted, topics_in_trouble
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import histories


def image_of_history(records: list[ApiMessageAndVersion]) -> MetadataImage:
    delta = MetadataDelta(MetadataImage.EMPTY)
    for record in records:
        delta.replay(record.message)
    return delta.apply(MetadataProvenance(offset=len(records), epoch=1))


def is_offline(partition: dict[str, Any]) -> bool:
    return bool(partition["leader"] == -1)


def is_under_replicated(partition: dict[str, Any]) -> bool:
    return len(partition["isr"]) < len(partition["replicas"])


def of(topics: dict[str, Any], wanted: Any) -> set[str]:
    return {name for name, topic in topics.items() if any(map(wanted, topic["partitions"].values()))}


@given(histories(min_steps=10, topics_only=True), st.integers(0, 4))
def test_an_overview_is_what_the_topics_one_by_one_say(history: Any, limit: int) -> None:
    image: MetadataImage = image_of_history(history)
    topics = image_to_json(image)["topics"]
    partitions = [one for topic in topics.values() for one in topic["partitions"].values()]
    told = overview_of(image.topics.rows(), limit)
    assert (told.topic_count, told.partition_count) == (len(topics), len(partitions))
    assert told.health == (
        sum(map(is_offline, partitions)),
        sum(is_under_replicated(one) and not is_offline(one) for one in partitions),
        sum(bool(one["addingReplicas"] or one["removingReplicas"]) for one in partitions),
        sum(one["leaderRecoveryState"] != 0 for one in partitions),
    )
    offline, under = of(topics, is_offline), of(topics, is_under_replicated)
    worst = sorted(topics, key=lambda name: (name not in offline, name not in under, name))
    assert told.worst == tuple(worst[:limit])


@given(histories(min_steps=10, topics_only=True), st.booleans(), st.booleans())
def test_topics_in_trouble_are_found(history: Any, offline: bool, under_replicated: bool) -> None:
    image = image_of_history(history)
    topics = image_to_json(image)["topics"]
    expected = (of(topics, is_offline) if offline else set()) | (
        of(topics, is_under_replicated) if under_replicated else set()
    )
    found = topics_in_trouble(image.topics.rows(), offline=offline, under_replicated=under_replicated)
    assert found == expected


@given(histories(min_steps=10, topics_only=True), st.integers(0, 8))
def test_no_topic_that_a_broker_hosts_is_left_out(history: Any, broker: int) -> None:
    image = image_of_history(history)
    topics = image_to_json(image)["topics"]
    assert of(topics, lambda one: broker in one["replicas"]) <= topics_hosted(image.topics.rows(), broker)
