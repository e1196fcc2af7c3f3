"""The events of a range of a source's log: a long range by columns, with the rows of the changes one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.events import bulk_log_events, log_events
from kraftlake.tables.events.log_events import LogEvents
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNDECODABLE, UNKNOWN, begin, data, end, partition, topic, uuid_of, write_directory
from tests.tables.events.test_writer import InMemory, config, leads
from tests.tables.sample_log import SAMPLES

SAMPLE = SAMPLES / "kafka-4.4" / "log" / "__cluster_metadata-0"


@pytest.fixture
def parts_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make every range long, and any number of records many; gets the last offset of each part taken as columns."""
    monkeypatch.setattr(log_events, "BULK_FROM", 0)
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", 0)
    taken: list[int] = []
    take_parts = bulk_log_events.LogReplay.take_parts

    def noted(self: LogReplay, parts: Sequence[BatchValues | RecordBatch]) -> Iterator[DeltaChunk]:
        yield from take_parts(self, parts)
        taken.append(parts[-1].last_offset)

    monkeypatch.setattr(bulk_log_events.LogReplay, "take_parts", noted)
    return taken


def told(path: Path, first: int | None = None, last: int | None = None, *, lenient: bool = False) -> LogEvents:
    opened = open_source(str(path))
    return LogEvents(opened.reader, partial(opened.changes, lenient=lenient), first, last)


def of_batches(log: Sequence[RecordBatch], first: int | None, last: int | None) -> LogEvents:
    reader: Any = InMemory(log)
    return LogEvents(reader, partial(LogChanges, reader), first, last)


def rows_of(events: LogEvents) -> tuple[list[tuple[object, ...]], str | None, list[int]]:
    """The rows, the fault at the end, and the offsets of what was skipped."""
    rows: list[tuple[object, ...]] = []
    fault = None
    try:
        for table in events:
            rows += [tuple(row.values()) for row in table.to_pylist()]
    except KraftlakeError as error:
        fault = str(error)
    return rows, fault, sorted(events.skipped)


def one_by_one(
    source: Path | Sequence[RecordBatch], first: int | None = None, last: int | None = None, *, lenient: bool = False
) -> tuple[list[tuple[object, ...]], str | None, list[int]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_events, "BULK_FROM", 1 << 40)
        if isinstance(source, Path):
            return rows_of(told(source, first, last, lenient=lenient))
        return rows_of(of_batches(source, first, last))


@pytest.mark.parametrize(("first", "last"), [(None, None), (403, None), (404, 4000), (1000, 1001), (2784, 2787)])
def test_a_range_of_a_real_log_has_the_rows_of_its_changes(
    parts_taken: list[int], first: int | None, last: int | None
) -> None:
    assert rows_of(told(SAMPLE, first, last)) == one_by_one(SAMPLE, first, last)
    assert parts_taken or last == 1001


@given(log=metadata_logs(), at=st.integers(0, 60), size=st.integers(0, 60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_range_of_any_log_does(parts_taken: list[int], log: list[RecordBatch], at: int, size: int) -> None:
    end = log[-1].last_offset
    first, last = min(at, end), min(at + size, end)
    assert rows_of(of_batches(log, first or None, last)) == one_by_one(log, first or None, last)


def odd_logs() -> Sequence[tuple[str, list[RecordBatch]]]:
    before = [data(0, topic(1), partition(1)), data(2, r.ProducerIdsRecord(next_producer_id=5), r.NoOpRecord())]
    change = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2)
    behind = [data(5, change)]
    in_transaction = [
        data(4, change, begin(), partition(1, leader=1)),
        leads(7, 2, 3001),
        data(8, UNKNOWN, config("topic-1", "1"), end(), epoch=2),
    ]
    return [
        ("unknown in a transaction", [*before, *in_transaction]),
        ("unknown", [*before, data(4, UNKNOWN), *behind]),
        ("in a newer version", [*before, data(4, b"\x01\x05\x09\x00"), *behind]),
        ("a newer mark", [*before, data(4, b"\x01\x17\x09\x00"), *behind]),
        ("undecodable", [*before, data(4, UNDECODABLE), *behind]),
        ("undecodable no-op", [*before, data(4, b"\x01\x14\x00\x00\x00"), *behind]),
        ("contradicting", [*before, data(4, r.FenceBrokerRecord(id=3, epoch=1)), *behind]),
    ]


@pytest.mark.parametrize("lenient", [True, False])
@pytest.mark.parametrize(("what", "log"), odd_logs())
def test_what_is_odd_is_skipped_or_told_as_it_is_one_by_one(
    tmp_path: Path, parts_taken: list[int], what: str, log: list[RecordBatch], lenient: bool
) -> None:
    path = write_directory(tmp_path, log)
    expected = one_by_one(path, lenient=lenient)
    assert rows_of(told(path, lenient=lenient)) == expected
    _, fault, skipped = expected
    assert fault or skipped, what


def test_few_records_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_log_events, "BulkLogEvents", None)
    table = pa.concat_tables([*told(SAMPLE, 403, 458)])
    assert set(table.column("offset").to_pylist()) == {458}
