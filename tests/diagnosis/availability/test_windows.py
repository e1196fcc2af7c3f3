"""Windows: their ends as offsets and times, where the log does not reach that far, and what can't be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from kraftlake.api import Source
from kraftlake.diagnosis.availability.summary import MEASURES
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import OffsetError, UsageError
from tests.diagnosis.availability.test_stretches import BEGIN, FENCE, THREE, T, cause, change, registration, source_of
from tests.replay import made_logs as log


def at(second: float) -> datetime:
    return datetime.fromtimestamp(T / 1000, UTC) + timedelta(seconds=second)


@pytest.fixture
def source() -> Source:
    """Offline from second 10 to 30, of 40."""
    return source_of(
        (0, [*BEGIN, THREE]), (10, [change(leader=-1), registration(1, **FENCE)]), (30, [change(leader=2)]),
        (40, [r.NoOpRecord()]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("window", "seconds", "offline"),
    [
        ((None, None), 40.0, 20.0),
        ((at(5), at(15)), 10.0, 5.0),
        ((at(12), at(13.5)), 1.5, 1.5),
        ((at(10), at(30)), 20.0, 20.0),
        ((at(30), None), 10.0, 0.0),
        ((6, 8), 20.0, 20.0),
        ((8, None), 10.0, 0.0),
        ((None, at(11)), 11.0, 1.0),
        (("now-20s", "now"), 20.0, 10.0),
    ],
)
def test_a_window_has_its_part_of_what_was(source: Source, window: Any, seconds: float, offline: float) -> None:
    found = source.availability(*window)
    assert (found.total["seconds"], found.total["offline_seconds"]) == (seconds, offline)
    assert found.end - found.begin == 1000 * seconds
    assert not found.starts_before_log
    assert not found.ends_after_log


def test_a_window_that_the_log_does_not_fill_says_so(source: Source) -> None:
    found = source.availability(at(-3), at(50))
    assert (found.starts_before_log, found.ends_after_log) == (True, True)
    assert (found.begin, found.end) == (T, T + 40_000)


def test_a_log_without_its_beginning_begins_with_its_snapshot(source: Source) -> None:
    reader = log.trimmed(source.reader.records, 7, 8)  # type: ignore[attr-defined]
    trimmed = Source(reader, SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
    found = trimmed.availability(at(5), by="partition")
    assert (found.begin, found.starts_before_log) == (T + 10_000, True)
    (row,) = found.rows.to_pylist()
    assert cause(row) == ("offline", 20.0, "earlier", None, None)
    inside = trimmed.availability(at(15), by="partition")
    assert (inside.begin, inside.starts_before_log, inside.total["offline_seconds"]) == (T + 15_000, False, 15.0)


@pytest.mark.parametrize(
    ("window", "error", "words"),
    [
        ((at(41), None), OffsetError, "before the time asked for"),
        ((None, at(-1)), OffsetError, "after the time asked for"),
        ((at(20), at(12)), UsageError, "runs backwards"),
        ((at(13), at(12)), UsageError, "runs backwards"),
        ((8, 6), UsageError, "runs backwards"),
        ((None, 99), OffsetError, "Offset 99 is not in the log"),
        ((-1, None), OffsetError, "Offset -1 is not in the log"),
    ],
)
def test_a_window_that_is_none_is_refused(source: Source, window: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        source.availability(*window)


def test_what_to_measure_by_is_checked(source: Source) -> None:
    with pytest.raises(UsageError, match="'rack' is nothing to measure by"):
        source.availability(by="rack")


def test_a_log_without_times_is_refused() -> None:
    reader = log.MadeLog(records=(log.data(0, log.topic(1), THREE, time=-1),))
    with pytest.raises(OffsetError, match="has a time"):
        Source(reader, SourceKind.DIRECTORY, "made", None).availability()  # type: ignore[arg-type]


def test_topics_are_names_or_patterns(source: Source) -> None:
    assert source.availability(topics=["topic-?"]).total["partitions"] == 1
    none = source.availability(topics=["other"])
    assert none.rows.num_rows == 0
    assert (none.total["partitions"], none.total["available_percent"]) == (0, None)


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        ("topic", [("topic", pa.string()), ("topic_id", pa.string())]),
        ("partition", [("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]),
        ("broker", [("broker", pa.int32()), ("losses", pa.int64()), ("fenced_seconds", pa.float64())]),
    ],
)
def test_the_table_has_the_columns_that_are_documented(source: Source, by: str, columns: list[Any]) -> None:
    assert source.availability(by=by).to_table().schema == pa.schema([*columns, *MEASURES])
