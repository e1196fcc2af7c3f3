"""Upkeep and compaction killed with SIGKILL, again and again, beside a writer that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.tables.lake_table import LakeTable
from tests.metadata_log.delta_protocol import check_commits
from tests.metadata_log.log_batches import data_batch
from tests.metadata_log.maintenance.test_derived_tables import made_of
from tests.metadata_log.maintenance.test_upkeep import DISK, grown, upkeep

ROOT = Path(__file__).resolve().parents[3]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
KILLS = 60 if LONG else 6
COMPACTION_KILLS = 60 if LONG else 6


def nursery_of(log: MetadataLog, *what: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.metadata_log.doomed_upkeep", str(log.path), *what],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def offsets_of(path: Path) -> list[int]:
    """As another reader of Delta tables sees them."""
    return sorted(DeltaTable(path).to_pyarrow_table(columns=["offset"]).column("offset").to_pylist())


def test_a_compaction_of_a_derived_table_killed_in_its_middle_beside_its_writer_costs_no_row(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 1)
    table = made_of(log, "events", None)
    rows: list[int] = []
    dead = seed = 0
    with nursery_of(log, "compact-rows") as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        while dead < COMPACTION_KILLS:
            assert seed < 3 * COMPACTION_KILLS, "too few were killed"
            for _ in range(4):
                rows += [len(rows)] * (1 + len(rows) % 3)
                table.append(pa.table({"offset": pa.array([rows[-1]] * rows.count(rows[-1]), pa.int64())}), rows[-1])
            nursery.stdin.write(f"{seed}\n")
            nursery.stdin.flush()
            seed += 1
            line = nursery.stdout.readline().split()
            assert line[0] == "dead", "the compaction's parent died"
            dead += int(line[1]) == signal.SIGKILL
            assert offsets_of(table.path) == rows
            assert LakeTable(table.description, log.path).last_offset() == rows[-1]
        nursery.stdin.close()
    assert read_table(table.path).version > 4 * seed, "no compaction came through"
    upkeep(log).run()
    upkeep(log).vacuum()
    live = {Path(uri).name for uri in DeltaTable(table.path).file_uris()}
    kept = {file.name for file in table.path.glob("*.parquet")} - live
    assert kept <= set(read_table(table.path).tombstones.since(0)), "no orphan is left, only what streams may need"
    assert offsets_of(table.path) == rows


def assert_nothing_is_left_behind(log: MetadataLog) -> None:
    upkeep(log).run()
    upkeep(log).vacuum()
    live = {Path(uri).name for uri in DeltaTable(log.path / "log").file_uris()}
    assert {path.name for path in (log.path / "log").glob("*.parquet")} == live


def test_upkeep_killed_at_any_moment_loses_no_row(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 1)
    with nursery_of(log) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        dead = 0
        for seed in range(KILLS):
            nursery.stdin.write(f"{seed}\n")
            nursery.stdin.flush()
            line = nursery.stdout.readline().split()
            assert line[0] == "dead", "the upkeep's parent died"
            dead += int(line[1]) == signal.SIGKILL
            again = MetadataLog.open(log.path, disk=DISK)
            expected = [data_batch(offset, 1 + offset % 3) for offset in starts(again.start_offset, again.end_offset)]
            assert list(again.batches()) == expected
            table = DeltaTable(log.path / "log")
            assert table.to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset").equals(again.rows())
            for _ in range(6):
                again.append([data_batch(again.end_offset, 1 + again.end_offset % 3)])
        nursery.stdin.close()
    assert dead > KILLS // 2, "too few were killed to show anything"
    assert MetadataLog.open(log.path).start_offset > 0, "no trim came through"
    assert_nothing_is_left_behind(log)


def starts(start: int, end: int) -> list[int]:
    """The base offsets of the batches between two offsets."""
    found = []
    while start < end:
        found.append(start)
        start += 1 + start % 3
    assert start == end
    return found


def test_a_compaction_killed_in_its_middle_beside_a_writer_costs_no_row(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 12)
    begun = check_commits(log.path / "log")
    dead = seed = 0
    with nursery_of(log, "compact") as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        while dead < COMPACTION_KILLS:
            assert seed < 3 * COMPACTION_KILLS, "too few were killed"
            nursery.stdin.write(f"{seed}\n")
            nursery.stdin.flush()
            seed += 1
            for _ in range(4):
                log.append([data_batch(log.end_offset, 1 + log.end_offset % 3)])
            line = nursery.stdout.readline().split()
            assert line[0] == "dead", "the compaction's parent died"
            dead += int(line[1]) == signal.SIGKILL
            again = MetadataLog.open(log.path, disk=DISK)
            assert again.end_offset == log.end_offset
            assert again.rows(columns=["offset"]).column("offset").to_pylist() == list(range(log.end_offset))
        nursery.stdin.close()
    expected = [data_batch(offset, 1 + offset % 3) for offset in starts(0, log.end_offset)]
    assert list(MetadataLog.open(log.path).batches()) == expected
    table = DeltaTable(log.path / "log")
    assert table.to_pyarrow_table().cast(LOG_SCHEMA).sort_by("offset").equals(MetadataLog.open(log.path).rows())
    assert check_commits(log.path / "log") > begun + 4 * seed, "no compaction came through"
    assert_nothing_is_left_behind(log)
