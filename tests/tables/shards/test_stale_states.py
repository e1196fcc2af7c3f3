"""States of shards go once no run goes on from them, and never while one may."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.runtime.clock import ManualClock, SystemClock
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.shards.stale_states import delete_stale_states
from kraftlake.tables.shards.state_files import StateManifest, states_of, write_manifest, write_state
from kraftlake.tables.table_locks import hold_tables
from tests.replay.made_logs import data, metadata_version, topic

HOUR_MS = 3_600_000


def later(hours: float) -> Disk:
    disk = Disk()
    disk.clock = ManualClock(SystemClock().milliseconds() + round(hours * HOUR_MS))
    return disk


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake whose table `events` ends at offset 1, with states after it."""
    log = MetadataLog.create(tmp_path / "lake", durability="os")
    log.append([data(0, metadata_version(), topic(1))])
    update_tables(tmp_path / "lake", ["events"])
    keep_states(tmp_path / "lake", "events", 1)
    return tmp_path / "lake"


def keep_states(lake: Path, table: str, offset: int) -> None:
    log_id = read_table(lake / "log").metadata.id
    files = (write_state(lake, f"{table}/{offset}-0", ReplayState()),)
    write_manifest(lake, table, StateManifest(log_id=log_id, offset=offset, files=files, knows_since=False))


def deleted(lake: Path, disk: Disk, *, dry_run: bool = False) -> tuple[str, ...]:
    return delete_stale_states(lake, read_table(lake / "log"), disk, age_ms=HOUR_MS, dry_run=dry_run)


def test_states_from_which_a_run_goes_on_stay(lake: Path) -> None:
    assert deleted(lake, later(24 * 365)) == ()
    assert len([*(states_of(lake) / "events").iterdir()]) == 2


def test_states_that_their_tables_have_passed_go(lake: Path) -> None:
    MetadataLog.open(lake).append([data(2, topic(2))])
    update_tables(lake, ["events"])
    assert deleted(lake, later(0.5)) == (), "a run may be writing them"
    assert deleted(lake, later(2), dry_run=True) == ("events",)
    with hold_tables(lake, ["events"]):
        assert deleted(lake, later(2)) == (), "a run holds the table"
    assert deleted(lake, later(2)) == ("events",)
    assert [*states_of(lake).iterdir()] == []
    assert deleted(lake, later(3)) == ()


def test_states_of_another_log_and_of_a_run_that_was_lost_go(lake: Path) -> None:
    write_state(lake, "local_changes/1-0", ReplayState())
    keep_states(lake, "partition_history", 1)
    manifest = states_of(lake) / "partition_history" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(read_table(lake / "log").metadata.id, "another"))
    assert deleted(lake, later(2)) == ("local_changes", "partition_history")
    assert [folder.name for folder in states_of(lake).iterdir()] == ["events"]
