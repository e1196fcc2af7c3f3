"""By columns, partitions are as they are since the same offsets as by replaying record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import Source
from kraftlake.diagnosis.blaming import newest_changes
from kraftlake.diagnosis.partition_since import partitions_since
from kraftlake.diagnosis.since import since_json
from kraftlake.diagnosis.thing_changes import begins_of
from kraftlake.diagnosis.things import Thing
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import histories
from tests.replay import made_logs as log


def source_of(batches: Sequence[RecordBatch], start: int = 0, *ends: int) -> Source:
    """A log in memory, from `start` on, with snapshots that end at `ends`."""
    return Source(log.trimmed(batches, start, *ends), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, **fields)


def by_columns(source: Source, at: int) -> list[Any] | None:
    found = partitions_since(source, source.image(at).to_json()["topics"], begins_of(source, at)[0], at)
    return None if found is None else [(name, number, since) for name, number, since, _ in found]


def by_record(source: Source, at: int) -> list[Any]:
    topics = source.image(at).to_json()["topics"]
    things = {
        (name, number): [Thing.partition(name, int(number), field) for field in ("leader", "isr", None)]
        for name, topic in topics.items()
        for number in topic["partitions"]
    }
    found = newest_changes(source, [thing for some in things.values() for thing in some], at)
    return [(*of, tuple(since_json(found[thing]) for thing in some)) for of, some in things.items()]


@given(histories(), st.data())
def test_random_histories_have_the_same_answers(history: list[ApiMessageAndVersion], data: st.DataObject) -> None:
    batches, offset = [], 0
    while offset < len(history):
        some = history[offset : offset + data.draw(st.integers(1, 8))]
        batches.append(RecordBatch.of(offset, 1, log.TIME + offset, some))
        offset += len(some)
    source = source_of(batches)
    at = data.draw(st.integers(0, offset - 1))
    columns = by_columns(source, at)
    assert columns is None or columns == by_record(source, at)


@pytest.mark.parametrize("start", [0, 6])
def test_answers_are_those_of_single_records_also_behind_a_snapshot(start: int) -> None:
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1), log.partition(1), log.topic(2), log.partition(2)],
        [change(isr=(1,)), change(leader=2, isr=(2,)), change(isr=(2, 1))], [change(isr=(2, 1))],
        [log.begin(), change(isr=(1,))], [log.end()], [log.begin(), change(leader=1)],
    )  # fmt: skip
    source = source_of(batches, start, *([start] if start else []))
    for at in range(start, 15):
        columns = by_columns(source, at)
        assert columns == by_record(source, at)
        assert columns is not None
        assert bool(columns) == (at >= 3)
    isr = {since["offset"] for _, _, (_, since, _) in columns or ()}
    assert isr == {12, 5}, "one since the end of its transaction, the other since its creation or the snapshot"


def test_columns_give_no_answer_where_a_transaction_has_changed_a_partition_twice() -> None:
    source = source_of(
        log.log_of(
            1, [log.metadata_version()], [log.topic(1), log.partition(1)],
            [log.begin(), change(leader=2), change(leader=1)], [log.end()],
        )
    )  # fmt: skip
    assert by_columns(source, 6) == by_record(source, 6)
    assert by_columns(source, 7) is None
    assert [since["offset"] for since in by_record(source, 7)[0][2]] == [7, 3, 7]
