from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.typed_rows import typed_schema
from kraftlake.runtime.errors import CorruptDataError, NotASourceError, OffsetError, UsageError
from kraftlake.tables import record_scan
from kraftlake.tables.record_scan import RecordScan, open_scanned, parts_of, read_part, type_of
from tests.records.typed_json import json_of_row
from tests.tables.sample_log import SAMPLE, SAMPLES, lake_of

LOGS = sorted(path / "log" / "__cluster_metadata-0" for path in SAMPLES.iterdir() if (path / "log").is_dir())
CHECKPOINT = next(iter(sorted(SAMPLE.glob("*4593*.checkpoint"))))


def scan_of(path: Path, **asked: Any) -> RecordScan:
    source, first, last = open_scanned(str(path), asked.pop("first", None), asked.pop("last", None))
    only = asked.get("only")
    return RecordScan(
        source=source.path, wanted=asked.pop("wanted", typed_schema(only)), first=first, last=last, **asked
    )


def read(scan: RecordScan) -> list[dict[str, Any]]:
    parts = parts_of(open_source(scan.source), scan.first, scan.last)
    tables = [table for first, last in parts for table in read_part(attrs.evolve(scan, first=first, last=last))]
    assert all(table.schema.equals(scan.wanted) for table in tables)
    return [row for table in tables for row in table.to_pylist()]


def lines(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json_of_row(row, row.get(row["type"].lower()), redacted=False) for row in rows]


def log_of(path: Path, first: int | None = None, last: int | None = None) -> list[dict[str, Any]]:
    return [record.to_json() for record in open_source(path).records(first, last)]


@pytest.mark.parametrize("path", [*LOGS, CHECKPOINT], ids=lambda path: path.parts[-3])
def test_a_source_is_read_as_its_log_says(path: Path) -> None:
    assert lines(read(scan_of(path, show_secrets=True))) == log_of(path)


@pytest.mark.parametrize(("only", "wanted"), [("END_TRANSACTION_RECORD", None), ("TOPIC_RECORD", ["offset", "type"])])
def test_rows_of_one_type_without_its_fields_need_no_payloads(only: str, wanted: list[str] | None) -> None:
    (path,) = [path for path in LOGS if "crash-torn" in path.parts]
    schema = typed_schema(only)
    rows = read(scan_of(path, only=only, wanted=schema if wanted is None else pa.schema(map(schema.field, wanted))))
    assert [row["offset"] for row in rows] == [each["offset"] for each in log_of(path) if each["type"] == only] != []


def test_a_lake_is_read_in_parts_whatever_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_scan, "RECORDS_A_PART", 1000)
    lake_of(tmp_path / "lake", commits=7)
    scan = scan_of(tmp_path / "lake", show_secrets=True)
    assert parts_of(open_source(tmp_path / "lake"), 0, 5736)[1:3] == [(1000, 1999), (2000, 2999)]
    assert lines(read(scan)) == log_of(SAMPLE)
    monkeypatch.setattr(record_scan, "RECORDS_A_PART", 300)  # a task takes up to four where there are many
    assert parts_of(open_source(tmp_path / "lake"), 0, 5736)[1:3] == [(1200, 2399), (2400, 3599)]
    assert lines(read(scan)) == log_of(SAMPLE)
    policy = UpkeepPolicy(compact_from=2, checkpoint_after=2, keep_commits=1, orphan_age_ms=0, exclusive=True)
    Upkeep(tmp_path / "lake", policy).run()
    assert lines(read(scan)) == log_of(SAMPLE)


def test_a_trimmed_lake_begins_where_it_begins(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = lake_of(tmp_path / "lake", commits=20)
    (snapshot,) = [each for each in open_directory(SAMPLE).snapshots if each.end_offset == 3038]
    log.add_snapshot(SnapshotFacts(end_offset=3038, epoch=1, last_contained_log_timestamp=1), list(snapshot.batches()))
    Upkeep(lake).trim(3038, stream_lag_ms=0)
    start = MetadataLog.open(lake).start_offset
    assert start > 0
    assert lines(read(scan_of(lake, show_secrets=True))) == log_of(SAMPLE, start)


def test_segments_are_parts_and_an_archive_is_one(tmp_path: Path) -> None:
    source = open_source(SAMPLE)
    assert source.kind is SourceKind.DIRECTORY
    segments = [segment.base_offset for segment in open_directory(SAMPLE).segments]
    assert [first for first, _ in parts_of(source, 0, 5736)] == segments
    assert len(segments) > 1
    with tarfile.open(tmp_path / "log.tar.gz", "w:gz") as archive:
        archive.add(SAMPLE, "__cluster_metadata-0")
    scan = scan_of(tmp_path / "log.tar.gz", show_secrets=True)
    assert parts_of(open_source(scan.source), 0, 5736) == [(0, 5736)]
    assert lines(read(scan)) == log_of(SAMPLE)


@given(st.integers(0, 5736), st.integers(0, 5736))
@settings(max_examples=10)
def test_offsets_bound_what_is_read(one: int, other: int) -> None:
    first, last = sorted((one, other))
    scan = scan_of(SAMPLE, first=first, last=last, wanted=pa.schema([typed_schema().field("offset")]))
    assert [row["offset"] for row in read(scan)] == list(range(first, last + 1))


def test_nothing_is_read_of_an_empty_log(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path / "lake")
    source, first, last = open_scanned(str(tmp_path / "lake"), None, None)
    assert parts_of(source, first, last) == []


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [
        (5737, None, "startOffset 5737 is not in __cluster_metadata-0, which holds offsets 0 to 5736"),
        (None, 9999, "endOffset 9999 is not in"),
    ],
)
def test_offsets_that_are_not_there_are_refused(first: int | None, last: int | None, reason: str) -> None:
    with pytest.raises(OffsetError, match=reason):
        open_scanned(str(SAMPLE), first, last)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="startOffset 5 is behind endOffset 4"):
        open_scanned(str(SAMPLE), 5, 4)
    with pytest.raises(NotASourceError):
        open_scanned(str(tmp_path), None, None)
    with pytest.raises(UsageError, match="PARTITION_RECRD is no record type; did you mean PARTITION_RECORD"):
        type_of("PartitionRecrd")
    assert type_of("PartitionChangeRecord") == type_of("partition_change_record") == "PARTITION_CHANGE_RECORD"
    assert type_of("KRAFT_VOTERS") == "KRAFT_VOTERS"


def test_a_damaged_log_says_where(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for segment in SAMPLE.glob("*.log"):
        content = bytearray(segment.read_bytes())
        if segment.name.startswith("0" * 20):
            content[len(content) // 2] ^= 0xFF
        (folder / segment.name).write_bytes(content)
    with pytest.raises(CorruptDataError, match="position"):
        read(scan_of(folder))


def test_a_scan_can_be_sent_to_another_process() -> None:
    import pickle

    scan = scan_of(SAMPLE, only="TOPIC_RECORD")
    assert pickle.loads(pickle.dumps(scan)) == scan
