"""The stream of the source `kraft`: what Spark asks its reader, without a session. In Spark: test_streaming.py."""

from __future__ import annotations

import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kraftlake.kafka_files.directory import open_directory
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.spark_jobs import KraftDataSource
from kraftlake.spark_jobs.lake_stream import Position
from kraftlake.spark_jobs.log_stream import LogStream
from kraftlake.spark_jobs.source_faults import KraftSourceError
from tests.tables.sample_log import LAST_OFFSET, SAMPLE, batches_between, lake_of, sample_batches

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

ENDS = {batch.last_offset + 1 for batch in sample_batches()}


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return lake_of(tmp_path / "lake", commits=3, last=3000)


def stream_of(lake: Path | str, **options: Any) -> LogStream:
    source = KraftDataSource({"path": str(lake), **{name: str(value) for name, value in options.items()}})
    return cast("LogStream", source.streamReader(source.schema()))


def step(stream: LogStream, start: Position) -> Position:
    return stream.latestOffset(start, stream.getDefaultReadLimit())


def rows_of(stream: LogStream, start: Position, end: Position) -> pa.Table:
    parts: list[InputPartition] = pickle.loads(pickle.dumps(stream.partitions(start, end)))
    return pa.Table.from_batches([batch for part in parts for batch in stream.read(part)])


def steps_of(stream: LogStream) -> Iterator[tuple[Position, Position]]:
    start = stream.initialOffset()
    while (end := step(stream, start)) != start:
        yield start, end
        start = end


@pytest.mark.parametrize("most", [1, 40, 1000, 10_000])
def test_a_step_ends_with_a_batch_and_takes_as_many_as_fit(log: MetadataLog, most: int) -> None:
    stream = stream_of(log.path, maxRecordsPerTrigger=most, startingOffset=2500, type="PartitionRecord")
    bounds = [(start["offset"], end["offset"]) for start, end in steps_of(stream)]
    assert [start for start, _ in bounds] == [2500, *(end for _, end in bounds[:-1])]
    assert bounds[-1][1] == log.end_offset == stream.reportLatestOffset()["offset"]
    for start, end in bounds:
        later = sorted(each for each in ENDS if start < each <= log.end_offset)
        assert end == max((each for each in later if each - start <= most), default=later[0])


def test_a_step_is_bounded_only_where_spark_says_so(log: MetadataLog) -> None:
    stream = stream_of(log.path, maxRecordsPerTrigger=1)
    assert stream.getDefaultReadLimit() == ReadMaxRows(1)
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable())["offset"] == log.end_offset
    assert stream_of(log.path).getDefaultReadLimit() == ReadAllAvailable()


def test_a_step_of_offsets_alone_is_one_row(log: MetadataLog) -> None:
    stream = stream_of(log.path, maxRecordsPerTrigger=1000, columns="offsets")
    steps = [*steps_of(stream)]
    assert len(steps) > 2
    rows = [rows_of(stream, *each).to_pylist() for each in steps]
    assert rows == [[{"first": start["offset"], "last": end["offset"] - 1}] for start, end in steps]
    read = KraftDataSource({"path": str(log.path), "columns": "offsets"})
    with pytest.raises(KraftSourceError, match="columns=offsets is of streams"):
        read.reader(read.schema())


def test_a_stream_starts_where_it_is_asked_to(log: MetadataLog) -> None:
    end = log.end_offset
    for asked, start in (("earliest", 0), ("latest", end), ("Latest", end), (17, 17), (0, 0), (end, end)):
        assert stream_of(log.path, startingOffset=asked).initialOffset()["offset"] == start
    with pytest.raises(KraftSourceError, match=f"offset {end + 1}, .* is behind the end of .*, {end}: "):
        stream_of(log.path, startingOffset=end + 1).initialOffset()


def test_what_is_available_now_is_fixed_when_the_query_starts(log: MetadataLog) -> None:
    now, later = stream_of(log.path), stream_of(log.path)
    now.prepareForTriggerAvailableNow()
    first = now.initialOffset()
    assert later.initialOffset() == first
    end = log.end_offset
    log.append(batches_between(end, LAST_OFFSET))
    assert step(now, first)["offset"] == step(now, step(now, first))["offset"] == end
    assert step(later, first)["offset"] == LAST_OFFSET + 1


def test_the_logs_own_columns_are_a_choice_that_shows_secrets(log: MetadataLog) -> None:
    stream = stream_of(log.path, columns="log", showSecrets="true", startingOffset=100)
    ((start, end),) = steps_of(stream)
    assert rows_of(stream, start, end).cast(LOG_SCHEMA).equals(log.rows(100))
    scram = stream_of(log.path, columns="log", showSecrets="true", type="UserScramCredentialRecord")
    ((start, end),) = steps_of(scram)
    assert set(rows_of(scram, start, end).column("type").to_pylist()) == {"USER_SCRAM_CREDENTIAL_RECORD"}
    with pytest.raises(KraftSourceError, match="with columns=log the payloads show secrets as they are"):
        stream_of(log.path, columns="log")


def test_a_running_stream_follows_a_compaction_and_a_clean_up(log: MetadataLog) -> None:
    stream = stream_of(log.path, type="TopicRecord")
    middle = step(stream, stream.initialOffset())
    log.append(batches_between(log.end_offset, LAST_OFFSET))
    policy = UpkeepPolicy(compact_from=2, checkpoint_after=2, keep_commits=1, orphan_age_ms=0, exclusive=True)
    Upkeep(log.path, policy).run()
    end = step(stream, middle)
    assert end["offset"] == LAST_OFFSET + 1
    offsets = [offset for bounds in ((stream.initialOffset(), middle), (middle, end))
               for offset in rows_of(stream, *bounds).column("offset").to_pylist()]  # fmt: skip
    assert offsets == [row["offset"] for row in log.rows(columns=["offset", "type"]).to_pylist()
                       if row["type"] == "TOPIC_RECORD"]  # fmt: skip


def trimmed(log: MetadataLog) -> int:
    """Trim as far as a snapshot allows; the first offset that there is then."""
    (snapshot,) = [each for each in open_directory(SAMPLE).snapshots if each.end_offset == 3038]
    facts = SnapshotFacts(end_offset=3038, epoch=1, last_contained_log_timestamp=1)
    log.add_snapshot(facts, list(snapshot.batches()))
    Upkeep(log.path).trim(3038, stream_lag_ms=0)
    log.refresh()
    return log.start_offset


def test_a_trim_below_a_stream_does_not_disturb_it_and_one_past_it_names_the_first_offset(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=20)
    stream = stream_of(log.path, maxRecordsPerTrigger=500)
    bounds = list(steps_of(stream))
    planned = stream.partitions(*bounds[0])
    first = trimmed(log)
    assert first > 500
    start, end = bounds[-1]
    assert step(stream, start) == end
    assert rows_of(stream, start, end).num_rows == end["offset"] - start["offset"]
    said = f"offset 0, the next one of this stream, was trimmed from {log.path}: the first one there is is {first}, "
    for ask in (lambda: step(stream, bounds[0][0]), lambda: stream_of(log.path).partitions(*bounds[0])):
        with pytest.raises(KraftSourceError, match=said):
            ask()
    with pytest.raises(KraftSourceError, match=rf"offset 0 was trimmed from .* while it was read: .* is {first}$"):
        list(stream.read(planned[0]))
    assert stream_of(log.path).initialOffset()["offset"] == first


def test_another_log_in_its_place_is_never_read(log: MetadataLog) -> None:
    stream = stream_of(log.path, type="TopicRecord")
    ((start, end),) = steps_of(stream)
    planned = stream.partitions(start, end)
    shutil.move(log.path, log.path.parent / "before")  # type: ignore[arg-type,union-attr]
    lake_of(log.path, commits=1)  # type: ignore[arg-type]
    with pytest.raises(KraftSourceError, match="the checkpoint of this stream is of another log than that of"):
        step(stream_of(log.path), end)
    with pytest.raises(KraftSourceError, match="was replaced by another log while it was read"):
        list(stream.read(planned[0]))


def test_a_log_that_is_shorter_than_its_checkpoint_is_refused(log: MetadataLog) -> None:
    shutil.copytree(log.path, log.path.parent / "copy")  # type: ignore[arg-type,union-attr]
    log.append(batches_between(log.end_offset, LAST_OFFSET))
    stream = stream_of(log.path)
    start = stream.initialOffset()
    (part,) = stream.partitions(start, end := step(stream, start))
    with pytest.raises(KraftSourceError, match=r"is behind the end of .*/copy, "):
        step(stream_of(log.path.parent / "copy"), end)
    shutil.rmtree(log.path)  # type: ignore[arg-type]
    shutil.move(log.path.parent / "copy", log.path)  # type: ignore[arg-type]
    with pytest.raises(KraftSourceError, match=f"but {LAST_OFFSET} was there when the read began"):
        list(stream.read(part))


REFUSED: list[tuple[Callable[[Path], LogStream], str]] = [
    (lambda _: stream_of(SAMPLE), rf"streams lakes alone, and {SAMPLE} is none: `kraftlake import {SAMPLE} LAKE`"),
    (lambda lake: stream_of(lake, startOffset=1), "startOffset is an option of reads: a stream has startingOffset"),
    (
        lambda lake: KraftDataSource({"path": str(lake)}).streamReader(
            from_arrow_schema(pa.schema([("leader", pa.int32())]))
        ),
        "Records have no column leader",
    ),
]


@pytest.mark.parametrize(("asked", "reason"), REFUSED)
def test_what_can_not_be_streamed_is_refused_whatever_spark_asks_first(
    log: MetadataLog, asked: Callable[[Path], LogStream], reason: str
) -> None:
    start = {"offset": 0, "log": "any"}
    for ask in (
        lambda stream: stream.initialOffset(),
        lambda stream: stream.latestOffset(start, ReadAllAvailable()),
        lambda stream: stream.partitions(start, start),
    ):
        with pytest.raises(KraftSourceError, match=reason):
            ask(asked(cast("Path", log.path)))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"startingOffset": "-1"}, "startingOffset is an offset, earliest or latest, not '-1'"),
        ({"maxRecordsPerTrigger": "0"}, "maxRecordsPerTrigger is at least 1"),
        ({"maxRecordsPerTrigger": "few"}, "maxRecordsPerTrigger is a number of records, not 'few'"),
        ({"columns": "all"}, "columns is typed, log or offsets, not 'all'"),
    ],
)
def test_options_that_make_no_sense_are_refused(log: MetadataLog, options: dict[str, str], reason: str) -> None:
    with pytest.raises(KraftSourceError, match=reason):
        stream_of(cast("Path", log.path), **options)


def test_an_earlier_spark_reads_and_says_that_it_can_not_stream(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    monkeypatch.delitem(sys.modules, "kraftlake.spark_jobs.log_stream")
    monkeypatch.setattr("pyspark.__version__", "4.0.1")
    source = KraftDataSource({"path": str(log.path)})
    assert len(cast("Any", source.reader(source.schema())).partitions()) == 1
    with pytest.raises(KraftSourceError, match=r'streams of format\("kraft"\) need Spark 4\.2, and this is 4\.0\.1'):
        source.streamReader(source.schema()).latestOffset()  # type: ignore[call-arg]


def test_a_step_of_offsets_takes_all_that_there_is_in_an_earlier_spark(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    stream: Any = stream_of(log.path, columns="offsets", startingOffset=100, maxRecordsPerTrigger=1)
    whole = {"first": 100, "last": log.end_offset - 1}
    start, end = stream.initialOffset(), stream.latestOffset()
    assert rows_of(stream, start, end).to_pylist() == [whole]
    log.append(batches_between(log.end_offset, log.end_offset + 20))
    assert rows_of(stream, end, stream.latestOffset()).to_pylist() == [
        {"first": whole["last"] + 1, "last": log.end_offset - 1}
    ]
