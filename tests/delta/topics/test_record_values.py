"""Records that are merged in bulk say what they say one by one, whichever of their fields they have."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.record_values import values_of
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UnwritableMetadataError
from tests.delta.topics.object_change import ObjectChange

TOPIC = Uuid(b"t" * 16)
HERE, THERE = Uuid(b"h" * 16), Uuid(b"e" * 16)
PARTITION = PartitionRecord(
    partition_id=0, topic_id=TOPIC, replicas=(1, 2), isr=(1, 2), removing_replicas=(), adding_replicas=(), leader=1,
    leader_epoch=3, partition_epoch=4, directories=(HERE, THERE),
)  # fmt: skip
CHANGE = PartitionChangeRecord(partition_id=0, topic_id=TOPIC)
FIELDS: list[tuple[str, Any]] = [
    ("isr", (2,)),
    ("leader", 2),
    ("leader_recovery_state", 1),
    ("replicas", (2, 1)),
    ("directories", (THERE, HERE)),
    ("adding_replicas", (3,)),
    ("removing_replicas", (1,)),
    ("eligible_leader_replicas", (2,)),
    ("last_known_elr", (1,)),
]


def replayed_both_ways(base: TopicsImage, records: list[Any]) -> tuple[TopicsImage, TopicsImage]:
    bulk, objects = BulkChange(base.rows()), ObjectChange(base)
    assert bulk.replay_values(values_of(records)[0]) == (len(records), [])
    for record in records:
        objects.replay(record)
    return TopicsImage.with_rows(bulk.apply()), objects.apply()


def base_image() -> TopicsImage:
    _, image = replayed_both_ways(TopicsImage.EMPTY, [TopicRecord(name="t", topic_id=TOPIC), PARTITION])
    return image


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_change_of_any_one_field_is_seen(field: str, value: Any) -> None:
    base = base_image()
    in_bulk, as_objects = replayed_both_ways(base, [attrs.evolve(CHANGE, **{field: value})])
    assert in_bulk == as_objects != base


@pytest.mark.parametrize(("field", "value"), FIELDS)
def test_a_partition_with_any_one_field_is_seen(field: str, value: Any) -> None:
    base = base_image()
    in_bulk, as_objects = replayed_both_ways(base, [attrs.evolve(PARTITION, **{field: value})])
    assert in_bulk == as_objects != base


def test_lists_that_some_records_lack_stay_with_those_that_have_them() -> None:
    records = [CHANGE, attrs.evolve(CHANGE, isr=(1,)), attrs.evolve(CHANGE, adding_replicas=(3, 4)), CHANGE]
    in_bulk, as_objects = replayed_both_ways(base_image(), records)
    assert in_bulk == as_objects
    partition = in_bulk.get_partition(TOPIC, 0)
    assert partition is not None
    assert (partition.isr, partition.adding_replicas, partition.partition_epoch) == ((1,), (3, 4), 8)


@pytest.mark.parametrize("wrong", [{"leader": 2**31}, {"leader_recovery_state": 128}, {"isr": ("1",)}, {"isr": 1}])
def test_a_record_that_kafka_could_not_write_has_no_value(wrong: dict[str, Any]) -> None:
    values, error = values_of([CHANGE, attrs.evolve(CHANGE, **wrong), CHANGE])
    assert values == values_of([CHANGE])[0]
    assert isinstance(error, UnwritableMetadataError)
