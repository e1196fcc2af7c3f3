"""The events of a range of a source's log: a long range by columns, with the rows of the changes one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.events.events_table import EVENTS
from kraftlake.tables.events.log_events import LogEvents
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import (
    UNDECODABLE,
    UNKNOWN,
    begin,
    data,
    end,
    partition,
    small_log,
    topic,
    trimmed,
    uuid_of,
    write_directory,
)
from tests.tables.events.reference import change_events
from tests.tables.events.test_events_writer import InMemory, config, leads, voted
from tests.tables.logs_for_writers import table_of
from tests.tables.sample_log import SAMPLES

SAMPLE = SAMPLES / "kafka-4.4" / "log" / "__cluster_metadata-0"


@pytest.fixture(params=[0, 1 << 40], ids=["many at once", "batch by batch"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read many batches at once everywhere, or nowhere."""
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", request.param)


Outcome = tuple[list[tuple[object, ...]], str | None, list[int]]
"""The rows, the fault at the end, and the offsets of what was skipped."""


def of_log_events(reader: Any, first: int | None = None, last: int | None = None, *, lenient: bool = False) -> Outcome:
    events = LogEvents(reader, first, last, lenient=lenient)
    rows: list[tuple[object, ...]] = []
    fault = None
    try:
        for table in events:
            rows += [tuple(row.values()) for row in table.to_pylist()]
    except KraftlakeError as error:
        fault = str(error)
    return rows, fault, [skipped.offset for skipped in events.skipped]


def one_by_one(reader: Any, first: int | None = None, last: int | None = None, *, lenient: bool = False) -> Outcome:
    """The rows of the changes that a broker's loader publishes."""
    changes = LogChanges(reader, first, last, lenient=lenient)
    control: list[RecordBatch] = []
    with suppress(KraftlakeError):
        control += (batch for batch in reader.batches(reader.start_offset) if batch.control)
    rows: list[tuple[Any, ...]] = []
    fault = None
    try:
        for change in changes:
            rows += change_events(change, control)
    except KraftlakeError as error:
        fault = str(error)
    table = table_of(rows, EVENTS.schema)
    return [tuple(row.values()) for row in table.to_pylist()], fault, [skipped.offset for skipped in changes.skipped]


@pytest.mark.parametrize(("first", "last"), [(None, None), (403, None), (404, 4000), (1000, 1001), (2784, 2787)])
def test_a_range_of_a_real_log_has_the_rows_of_its_changes(first: int | None, last: int | None) -> None:
    reader = open_source(str(SAMPLE)).reader
    assert of_log_events(reader, first, last) == one_by_one(reader, first, last)


@given(log=metadata_logs(), at=st.integers(0, 60), size=st.integers(0, 60))
@settings(few_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_range_of_any_log_does(log: list[RecordBatch], at: int, size: int) -> None:
    end = log[-1].last_offset
    first, last = min(at, end), min(at + size, end)
    reader = InMemory(log)
    assert of_log_events(reader, first or None, last) == one_by_one(reader, first or None, last)


def test_a_control_record_before_a_range_makes_no_event_when_a_transaction_is_open() -> None:
    reader = InMemory([data(0, begin()), voted(1, (3000, 1)), data(3, end())])
    for first, kinds in ((1, ["feature_changed", "voter_added"]), (2, ["voter_added"]), (3, [])):
        rows, _, _ = of_log_events(reader, first, 3)
        assert [row[3] for row in rows] == kinds
        assert rows == one_by_one(reader, first, 3)[0]


def test_the_load_of_the_snapshot_that_a_log_starts_with_has_no_events() -> None:
    reader = trimmed(small_log(), 8, 10)
    rows, fault, _ = one_by_one(reader)
    assert of_log_events(reader) == (rows, fault, [])
    assert min(row[0] for row in rows) == 13


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
def test_what_is_odd_is_skipped_or_reported_as_it_is_one_by_one(
    tmp_path: Path, what: str, log: list[RecordBatch], lenient: bool
) -> None:
    reader = open_source(str(write_directory(tmp_path, log))).reader
    expected = one_by_one(reader, lenient=lenient)
    assert of_log_events(reader, lenient=lenient) == expected
    _, fault, skipped = expected
    assert fault or skipped, what
