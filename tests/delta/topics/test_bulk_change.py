from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import registration_of
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.replay.journal import DID_END
from kraftlake.records import metadata_records as r
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from tests.histories import histories, uuid_of

_KINDS = (r.TopicRecord, r.PartitionRecord, r.PartitionChangeRecord, r.RemoveTopicRecord, r.ClearElrRecord)


def replayed(image: TopicsImage, records: list[ApiMessageAndVersion]) -> TopicsImage:
    delta = TopicsDelta(image)
    for record in records:
        if isinstance(record.message, r.RemoveTopicRecord):
            delta.replay_remove_topic(record.message)
        else:
            delta.keep(record.message)  # type: ignore[arg-type]
    return delta.apply()


def registration_row(change: BulkChange, row: Any) -> PartitionRegistration:
    return registration_of(tuple(row.tolist()), change.heap(), change.directory_ids())


@given(history=histories(topics_only=True, max_steps=60), base=st.integers(0, 60))
def test_each_version_is_the_state_after_its_record_at_a_fixed_place(
    history: list[ApiMessageAndVersion], base: int
) -> None:
    records = [record for record in history if isinstance(record.message, _KINDS)]
    image = replayed(TopicsImage.EMPTY, records[:base])
    change = BulkChange(image.rows().merged(), of_log=True)
    for record in records[base:]:
        value = np.frombuffer(encode_value(record.message, record.version), np.uint8)
        stop, versions = change.replay_journaled(value, np.zeros(1, np.int64), np.full(1, len(value), np.int64))
        assert stop
        before, image = image, replayed(image, [record])
        topics, partitions = change.topics_at(versions.places).tolist(), change.partitions_at(versions.places).tolist()
        heap, directories = change.heap(), change.directory_ids()
        seen = set()
        for index, (topic, partition) in enumerate(zip(topics, partitions, strict=True)):
            state = image.get_partition(change.topic_id(topic), partition)
            seen.add((change.topic_id(topic), partition))
            if versions.did[index] & DID_END:
                assert state is None
            else:
                assert registration_of(tuple(versions.after[index].tolist()), heap, directories) == state
            was = before.get_partition(change.topic_id(topic), partition)
            if was is not None:
                assert registration_of(tuple(versions.before[index].tolist()), heap, directories) == was
            else:
                assert not versions.before[index].any()
        for name in before.may_differ(image):
            for old in (before.get_topic(name), image.get_topic(name)):
                for partition in old.partitions if old is not None else ():
                    if before.get_partition(old.id, partition) != image.get_partition(old.id, partition):
                        assert (old.id, partition) in seen


@given(history=histories(topics_only=True, max_steps=60), base=st.integers(0, 60))
def test_many_records_make_the_versions_of_one_by_one(history: list[ApiMessageAndVersion], base: int) -> None:
    records = [record for record in history if isinstance(record.message, _KINDS)]
    image = replayed(TopicsImage.EMPTY, records[:base])
    values = [encode_value(record.message, record.version) for record in records[base:]]
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    data, starts, stops = np.frombuffer(b"".join(values), np.uint8), ends[:-1].copy(), ends[1:].copy()
    at_once, singly = BulkChange(image.rows().merged()), BulkChange(image.rows().merged())
    stop, versions = at_once.replay_journaled(data, starts, stops)
    expected = []
    assert stop == len(values)
    for record in range(stop):
        done, note = singly.replay_journaled(data, starts[record : record + 1], stops[record : record + 1])
        assert done, "it was replayed among others"
        for number in range(len(note.places)):
            row = registration_row(singly, note.after[number]) if not note.did[number] & DID_END else None
            expected.append((record, note.places[number], row, note.did[number]))
    assert [
        (
            versions.records[number],
            versions.places[number],
            registration_row(at_once, versions.after[number]) if not versions.did[number] & DID_END else None,
            versions.did[number],
        )
        for number in range(len(versions.records))
    ] == expected


def test_changes_of_partitions_that_came_out_of_their_order_are_of_these() -> None:
    came = [
        r.TopicRecord(name="odd", topic_id=uuid_of(1)),
        *(
            r.PartitionRecord(
                partition_id=number, topic_id=uuid_of(1), replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=0
            )
            for number in (0, 2, 1)
        ),
    ]
    changes = [
        r.PartitionChangeRecord(partition_id=number, topic_id=uuid_of(1), isr=(2,), leader=2) for number in (1, 0, 2, 1)
    ]
    change, seen = BulkChange(TopicsImage.EMPTY.rows()), []
    for records in (came, changes):
        values = [encode_value(record, 0) for record in records]
        ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
        stop, versions = change.replay_journaled(
            np.frombuffer(b"".join(values), np.uint8), ends[:-1].copy(), ends[1:].copy()
        )
        assert stop == len(records)
        seen = change.partitions_at(versions.places).tolist()
    assert seen == [1, 0, 2, 1]
    assert [registration_row(change, row).partition_epoch for row in versions.after] == [0, 0, 0, 1]
