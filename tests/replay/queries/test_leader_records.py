"""Who leads partitions is read from many batches at once as it is from one after the other."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.serde import ApiMessageAndVersion, UnknownRecord
from kraftlake.replay.queries.leader_records import Keys, key_of, leaders_named
from tests.at_least_one import at_least_one
from tests.replay import made_logs as log

KEYS = Keys(key_of(log.uuid_of(topic), partition) for topic, partition in ((1, 0), (1, 1), (2, 1)))
"""Two of one topic, and one of which another topic's id begins alike."""

LISTS = st.none() | st.lists(st.integers(0, 5), max_size=4).map(tuple) | st.just(tuple(range(40)))
WHERE: dict[str, Any] = {"topic_id": st.integers(1, 3).map(log.uuid_of), "partition_id": st.integers(0, 2)}
CHANGES = st.builds(
    r.PartitionChangeRecord,
    **WHERE,
    isr=LISTS,
    leader=st.integers(-2, 3),
    replicas=LISTS,
    leader_recovery_state=st.integers(-1, 1),
)
PARTITIONS = st.builds(
    r.PartitionRecord,
    **WHERE,
    replicas=st.just((1, 2)),
    isr=st.just((1, 2)),
    leader=st.integers(-1, 3),
    leader_epoch=st.just(0),
    partition_epoch=st.just(0),
)
OTHERS = st.sampled_from(
    [log.begin(), log.end(), log.abort(), log.topic(1), r.NoOpRecord(), r.RemoveTopicRecord(topic_id=log.uuid_of(1))]
)
RECORDS = st.lists(
    st.tuples(CHANGES, st.integers(0, 2)) | st.tuples(PARTITIONS | OTHERS, st.just(0)), min_size=1, max_size=30
)


def batch_of(offset: int, records: list[tuple[Any, int]]) -> RecordBatch:
    made = [ApiMessageAndVersion(message, version) for message, version in records]
    batch = RecordBatch.of(offset, 1, log.TIME, made)
    times = tuple(log.TIME + offset + index for index in range(len(made)))
    return attrs.evolve(batch, timestamps=times, timestamp=times[-1])


def as_values(batches: list[RecordBatch]) -> list[BatchValues | RecordBatch]:
    found = list(read_values(memoryview(b"".join(map(encode_batch, batches))), file="f", position=0))
    assert any(isinstance(part, BatchValues) for part in found)
    return found


@given(RECORDS, st.integers(1, 5))
def test_many_batches_at_once_give_the_same_leaders_as_each_of_them(records: list[tuple[Any, int]], size: int) -> None:
    batches = [batch_of(at, records[at : at + size]) for at in range(0, len(records), size)]
    assert [*leaders_named(as_values(batches), KEYS)] == [*leaders_named(batches, KEYS)]


@pytest.mark.parametrize("isr", [None, (), (1,), tuple(range(31)), tuple(range(32)), tuple(range(200))])
def test_a_leader_is_found_after_an_isr_of_any_length(isr: tuple[int, ...] | None) -> None:
    change = r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, isr=isr, leader=7)
    silent = r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, isr=isr, replicas=(1, 2))
    batches = [batch_of(5, [(silent, 0), (change, 2)])]
    assert [*leaders_named(as_values(batches), KEYS)] == [(key_of(log.uuid_of(1), 0), 7, 6, log.TIME + 6)]


def test_records_of_unknown_versions_or_too_short_name_no_leader() -> None:
    change = r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, leader=7)
    (value,) = batch_of(0, [(change, 0)]).values
    newer = UnknownRecord(change.API_KEY, 3, value[:2] + b"\x03" + value[3:])
    batches = [log.data(0, newer, b"\x01", b"", b"\x01\x05\x00short", change)]
    assert [leader for _, leader, _, _ in leaders_named(batches, KEYS)] == [7]
    assert [*leaders_named(as_values(batches), KEYS)] == [*leaders_named(batches, KEYS)]


def test_a_transaction_that_spans_chunks_takes_effect_at_its_end() -> None:
    lost = r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, leader=-1)
    batches = log.log_of([log.begin()], [lost], [log.end()], [log.begin()], [lost], [log.abort()], [lost])
    told = [(log.TIME + 2, 2), (log.TIME + 6, 6)]
    for cut in at_least_one(range(1, len(batches))):
        parts = [*as_values(batches[:cut]), *as_values(batches[cut:])]
        assert [(time, offset) for _, _, offset, time in leaders_named(parts, KEYS)] == told
