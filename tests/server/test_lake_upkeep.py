"""Upkeep by a declared policy: what is within the window is answered as before, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.retention import Retention
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_table import SnapshotTable
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import LakeError, OffsetError, TooEarlyError
from kraftlake.server import lake_upkeep
from kraftlake.server.lake_upkeep import LakeUpkeep, Removal
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.table_locks import hold_upkeep
from tests.at_least_one import at_least_one
from tests.server.lake_of_days import (
    BEGIN_MS,
    DAY_MS,
    add_day,
    answers,
    first_of_day,
    lake_of_days,
    last_time_ms,
)

ROOT = Path(__file__).resolve().parents[2]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
DAYS = 26 if LONG else 20
WINDOW = 6
POLICY = Retention(keep_ms=WINDOW * DAY_MS, newest_snapshots=3, daily_days=12)
KILLED_AT = range(1, 60) if LONG else (2, 11, 25)
"""The numbers of the operations of a disk at which an upkeep is killed."""
WITHIN = first_of_day(DAYS - WINDOW)
"""The first offset within the window."""


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = lake_of_days(tmp_path_factory.mktemp("days") / "lake", DAYS)
    LakeUpkeep(lake).declare(POLICY)
    return lake


@pytest.fixture(scope="module")
def expected(untouched: Path) -> list[Any]:
    """What the untouched lake answers within the window."""
    return answers(untouched, WITHIN)


@pytest.fixture
def lake(untouched: Path, tmp_path: Path) -> Path:
    shutil.copytree(untouched, tmp_path / "lake")
    return tmp_path / "lake"


def ends(lake: Path) -> list[int]:
    return [snapshot.end_offset for snapshot in MetadataLog.open(lake).snapshots()]


def test_what_is_within_the_window_is_answered_as_before_and_the_rest_is_listed(
    lake: Path, expected: list[Any]
) -> None:
    before = ends(lake)
    planned = LakeUpkeep(lake).run(dry_run=True).removal
    assert ends(lake) == before
    done = LakeUpkeep(lake).run().removal
    assert done.held_back == ()
    assert done.trim is not None
    assert (done.trim.new_start, done.trim.files) == (WITHIN, WITHIN)
    assert planned == done
    gone = [one.end_offset for one in done.snapshots]
    assert gone
    assert sorted([*ends(lake), *gone]) == before
    assert answers(lake, WITHIN) == expected
    with pytest.raises(OffsetError, match=f"first image from there on is the one at offset {WITHIN - 1}"):
        kraftlake.open(lake).image(WITHIN - 2)
    assert kraftlake.open(lake).verify().sound
    again = LakeUpkeep(lake).run().removal
    assert (again.snapshots, again.tables, again.held_back) == ((), {}, ())
    assert again.trim is None


def test_the_facts_of_deleted_snapshots_go_with_the_next_checkpoint(lake: Path) -> None:
    LakeUpkeep(lake).run()
    left, facts = ends(lake), read_table(lake / "snapshots").transactions
    Upkeep(lake).run(force_checkpoint=True)
    assert ends(lake) == left
    remaining = read_table(lake / "snapshots").transactions
    assert len(remaining) == 4 * len(left) < len(facts)


def test_a_deleted_snapshot_may_come_back(lake: Path) -> None:
    (gone, *_) = LakeUpkeep(lake).run().removal.snapshots
    log = MetadataLog.open(lake)
    source = MetadataLog.open(lake)
    kept = log.snapshots()[-1]
    assert gone.end_offset not in ends(lake)
    assert source.add_snapshot(gone, kept.batches())
    assert gone.end_offset in ends(lake)


def test_without_a_declared_policy_all_stays(tmp_path: Path) -> None:
    lake = lake_of_days(tmp_path / "lake", 3)
    before = ends(lake)
    assert LakeUpkeep(lake).run().removal == Removal(retention=None)
    assert (ends(lake), MetadataLog.open(lake).start_offset) == (before, 0)


def test_the_only_base_stays_however_short_the_window_is(tmp_path: Path) -> None:
    lake = lake_of_days(tmp_path / "lake", 1)
    policy = Retention(keep_ms=0, newest_snapshots=1, daily_days=0)
    for _ in range(2):
        LakeUpkeep(lake).run(retention=policy)
    (only,) = ends(lake)
    add_day(MetadataLog.open(lake), BEGIN_MS + DAY_MS, "later", snapshots=0)
    assert MetadataLog.open(lake).start_offset == only
    assert kraftlake.open(lake).image().offset == only - 1


def test_a_damaged_snapshot_is_no_base(lake: Path) -> None:
    (base,) = [one for one in MetadataLog.open(lake).snapshots() if one.end_offset == WITHIN]
    for path in base.data_paths:
        data = path.read_bytes()
        path.write_bytes(data[:4] + bytes(64) + data[68:])
    done = LakeUpkeep(lake).run().removal
    assert done.trim is not None
    assert done.trim.new_start < WITHIN
    assert any(base.name in why for why in done.held_back)
    first = ends(lake)[0] - 1
    assert kraftlake.open(lake).image(WITHIN).offset == WITHIN > first


def test_a_table_that_has_still_to_read_the_log_holds_the_trim_back_and_a_current_one_is_trimmed_with_it(
    lake: Path,
) -> None:
    events = update_tables(lake, ["events", "partition_history"]).offset
    assert events == MetadataLog.open(lake).end_offset - 1
    done = LakeUpkeep(lake).run().removal
    assert done.held_back == ()
    assert done.tables.keys() <= {"events", "partition_history"}


def test_a_lagging_table_is_named(tmp_path: Path) -> None:
    lake = lake_of_days(tmp_path / "lake", 3)
    update_tables(lake, ["events"])
    log = MetadataLog.open(lake)
    for day in range(3, DAYS):
        add_day(log, BEGIN_MS + day * DAY_MS, f"day-{day}")
    done = LakeUpkeep(lake).run(retention=POLICY).removal
    assert done.trim is None or done.trim.new_start <= first_of_day(3)
    assert len(done.held_back) == 1
    assert "events/" in done.held_back[0]
    assert kraftlake.open(lake).image(first_of_day(3)).offset == first_of_day(3)


def test_an_upkeep_that_is_killed_between_two_writes_loses_nothing(
    untouched: Path, tmp_path: Path, expected: list[Any]
) -> None:
    lakes = {operation: tmp_path / str(operation) for operation in KILLED_AT}
    for lake in lakes.values():
        shutil.copytree(untouched, lake)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.server.doomed_lake_upkeep"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as nursery:  # fmt: skip
        printed, _ = nursery.communicate("".join(f"{lake} {operation}\n" for operation, lake in lakes.items()))
    ended = [int(line) for line in printed.split()]
    assert len(ended) == len(KILLED_AT)
    assert {*ended} <= {signal.SIGKILL, 0}
    assert ended.count(signal.SIGKILL) > len(KILLED_AT) // 2
    for lake in at_least_one([*lakes.values()]):
        assert answers(lake, WITHIN) == expected
        LakeUpkeep(lake).run()
        assert answers(lake, WITHIN) == expected
        assert MetadataLog.open(lake).start_offset == WITHIN
        properties = [read_table(lake / table).metadata.configuration for table in ("log", "snapshots")]
        assert [one["delta.appendOnly"] for one in properties] == ["true", "true"]


class FullDisk(Disk):
    """A disk that has no room after some writes."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(path, data)


@pytest.mark.parametrize("writes", range(4) if LONG else (0, 2))
def test_a_full_disk_is_one_sentence_and_costs_nothing(lake: Path, expected: list[Any], writes: int) -> None:
    with pytest.raises(LakeError, match="No space left on device; the lake is as it was"):
        LakeUpkeep(lake, disk=FullDisk(writes)).remove()
    assert answers(lake, WITHIN) == expected
    LakeUpkeep(lake).run()
    assert answers(lake, WITHIN) == expected


def test_a_second_upkeep_is_refused_while_one_removes(lake: Path) -> None:
    with hold_upkeep(lake), pytest.raises(TooEarlyError, match=r"another upkeep removes what .*: wait until"):
        LakeUpkeep(lake).run()
    assert LakeUpkeep(lake).run().removal.snapshots


def test_two_upkeeps_at_once_without_locks_lose_nothing(
    lake: Path, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an object store, which has no locks."""
    monkeypatch.setattr(lake_upkeep, "hold_upkeep", lambda _: nullcontext())
    faults: list[BaseException] = []

    def run() -> None:
        try:
            LakeUpkeep(lake).run()
        except BaseException as fault:
            faults.append(fault)

    both = [threading.Thread(target=run) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert faults == []
    assert MetadataLog.open(lake).start_offset == WITHIN
    assert answers(lake, WITHIN) == expected


@pytest.mark.parametrize("years", [-60, 60])
def test_a_machine_whose_clock_is_wrong_removes_nothing_within_the_window(
    lake: Path, expected: list[Any], years: int
) -> None:
    clock = ManualClock(max(0, last_time_ms(DAYS) + years * 365 * DAY_MS))
    LakeUpkeep(lake, clock=clock).run()
    assert answers(lake, WITHIN) == expected
    assert MetadataLog.open(lake).start_offset == (0 if years < 0 else WITHIN)


def test_a_log_whose_times_jump_loses_a_day_at_most(lake: Path) -> None:
    add_day(MetadataLog.open(lake), last_time_ms(DAYS) + 10 * 365 * DAY_MS, "far")
    a_day_later = first_of_day(DAYS - WINDOW + 1)
    before = answers(lake, a_day_later)
    LakeUpkeep(lake, clock=ManualClock(last_time_ms(DAYS) + 20 * 365 * DAY_MS)).run()
    assert answers(lake, a_day_later) == before


def test_a_reader_that_has_begun_goes_on(lake: Path) -> None:
    policy = UpkeepPolicy(orphan_age_ms=UpkeepPolicy().orphan_age_ms)
    readers = [one for one in MetadataLog.open(lake).snapshots() if one.end_offset < WITHIN]
    deleted = {one.end_offset for one in LakeUpkeep(lake).run().removal.snapshots}
    Upkeep(lake, policy).vacuum()
    begun = [one for one in readers if one.end_offset in deleted]
    assert begun
    assert [list(one.batches()) for one in begun], "its files are there until they are as old as orphans"


def test_a_service_removes_once_an_hour(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rounds = ManualClock(last_time_ms(DAYS)), list[int]()
    work = LakeUpkeep(lake, clock=clock)
    remove = work.remove
    monkeypatch.setattr(work, "remove", lambda: (rounds.append(1), remove())[1])
    for hours, done in ((0, 1), (0.9, 1), (0.2, 2), (0, 2)):
        clock.advance(hours * 3_600_000)
        work.remove_if_due()
        assert len(rounds) == done
    assert MetadataLog.open(lake).start_offset == WITHIN


def test_snapshots_that_share_a_file_stay(lake: Path) -> None:
    from deltalake import DeltaTable

    DeltaTable(lake / "snapshots").optimize.compact()
    table = SnapshotTable.open(lake / "snapshots", MetadataLog.open(lake).disk)
    assert table is not None
    before = ends(lake)
    done = LakeUpkeep(lake).run().removal
    assert (done.snapshots, ends(lake)) == ((), before)
    assert any("share a file" in why for why in done.held_back)
