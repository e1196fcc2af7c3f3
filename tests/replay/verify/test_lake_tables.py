from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

import kraftlake
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.rows import to_rows
from kraftlake.tables.catch_up.updating import update_tables
from tests.metadata_log.log_batches import TIME, UnsyncedDisk, data_batch, snapshot_batches
from tests.replay.made_logs import small_log


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of some commits, with a checkpoint in the middle of them, two snapshots and two derived tables."""
    log = MetadataLog.create(tmp_path / "lake", disk=UnsyncedDisk())
    for batch in small_log():
        log.append([batch])
    assert log.version >= 6
    DeltaTable(log.path / "log", version=2).create_checkpoint()
    for topics in (2, 3):
        log.add_snapshot(
            SnapshotFacts(end_offset=topics, epoch=1, last_contained_log_timestamp=TIME), snapshot_batches(topics)
        )
    update_tables(log.path, ["events", "topic_history"])
    return log.path


def problems(lake: Path) -> list[str]:
    return [f"{problem.file}: {problem.message}" for problem in kraftlake.open(lake).verify().problems]


def lose_commits_behind_the_checkpoint(lake: Path) -> None:
    for version in range(3, MetadataLog.open(lake).version):
        commit_path(lake / "log", version).unlink()


def lose_a_commit_that_a_checkpoint_stands_for(lake: Path) -> None:
    commit_path(lake / "log", 1).unlink()


def tear_a_checkpoint(lake: Path) -> None:
    path = lake / "log" / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    path.write_bytes(path.read_bytes()[:-20])


def append_as_another_writer(lake: Path) -> None:
    end = MetadataLog.open(lake).end_offset
    write_deltalake(lake / "log", to_rows([data_batch(end + 5)]), mode="append")


def append_below_the_start(lake: Path) -> None:
    rows = to_rows([data_batch(0)])
    write_deltalake(lake / "log", rows.set_column(0, rows.schema.field("offset"), [[-7]]), mode="append")


def lose_a_file_of_a_snapshot(lake: Path) -> None:
    next((lake / "snapshots").glob(f"{3:020d}-*.parquet")).unlink()


def data_file(lake: Path, table: str) -> Path:
    return next((lake / table).glob("*.parquet"))


def change_a_byte_of_a_derived_table(lake: Path) -> None:
    path = data_file(lake, "events")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def lose_a_file_of_a_derived_table(lake: Path) -> None:
    data_file(lake, "topic_history").unlink()


def tear_a_commit_of_a_derived_table(lake: Path) -> None:
    commit_path(lake / "events", 1).write_bytes(b'{"add')


def tear_a_checkpoint_of_a_derived_table(lake: Path) -> None:
    DeltaTable(lake / "events").create_checkpoint()
    (path,) = (lake / "events" / "_delta_log").glob("*.checkpoint.parquet")
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES: dict[Callable[[Path], None], str] = {
    lose_commits_behind_the_checkpoint: "Version 3 of the Delta table .* is missing although a later one exists",
    lose_a_commit_that_a_checkpoint_stands_for: "00000000000000000001.json is missing although an earlier version is",
    tear_a_checkpoint: "00000000000000000002.checkpoint.parquet is no checkpoint of a Delta table .*: delete it",
    append_as_another_writer: "holds offset .* but its log ends before .*: something else than kraftlake wrote to it",
    append_below_the_start: "holds offset -7 .* but its log starts at 0: something else than kraftlake wrote to it",
    lose_a_file_of_a_snapshot: "00000000000000000003-0000000001.checkpoint: .* is missing: the lake lost a data file;",
    change_a_byte_of_a_derived_table: "parquet is missing or damaged: delete the folder events/ and run `kraftlake ta",
    lose_a_file_of_a_derived_table: "parquet is missing or damaged: delete the folder topic_history/ and run `kraftla",
    tear_a_commit_of_a_derived_table: "it is torn or was overwritten: delete the folder events/ and run `kraftlake ta",
    tear_a_checkpoint_of_a_derived_table: r"checkpoint.parquet is no checkpoint of a Delta table .*: delete",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_damage_left_of_the_tables_is_found_by_verify(lake: Path, damage: Callable[[Path], None]) -> None:
    sound = problems(lake)
    damage(lake)
    added = [problem for problem in problems(lake) if problem not in sound]
    assert any(re.search(DAMAGES[damage], problem) for problem in added), added
