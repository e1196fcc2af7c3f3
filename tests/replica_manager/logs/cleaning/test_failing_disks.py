"""Disks that fail or are full in the middle of a cleaning, and processes that are killed in it."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import attrs
import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.cleaning.log_cleaner import LogCleaner
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.logs.disk.files import DiskFiles, Files
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.log import without_logs
from simulator.faulty_files import FaultyFiles
from tests.replica_manager.logs.cleaning.cleaned import COMPACTED, Record, fill, latest_values, records_of_log
from tests.replica_manager.logs.cleaning.doomed_cleaner import key_of, opened_log, value_of

QUICK = os.environ.get("KRAFTLAKE_TESTS") != "long"
KILLS = 15
ROOT = Path(__file__).resolve().parents[4]
NAME = TopicPartition("foo", 0)


@attrs.define(eq=False)
class FailingFiles(FaultyFiles):
    """Files all of whose calls fail from one on."""

    fail_after: int | None = None

    def call(self, kind: str, path: str) -> None:
        super().call(kind, path)
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))


def started(files: Files, failed: list[int | None], folder: str = "d") -> DiskLogManager:
    manager = open_log_manager(
        [folder], cluster_id="c", node_id=1, clock=ManualClock(10_000), defaults=COMPACTED,
        topic_configs=lambda _: {}, on_failure=lambda _, error: failed.append(error.errno), files=files,
    )  # fmt: skip
    manager.startup((), lambda *_: False)
    return manager


def filled(manager: DiskLogManager) -> DiskPartitionLog:
    log = manager.get_or_create_log(
        NAME, is_new=True, is_future=False, topic_id=Uuid.random(), target_directory_id=None
    )
    fill(log, count=14, keys=4)
    log.flush()
    manager.checkpoint()
    return log


def clean(manager: DiskLogManager) -> LogCleaner:
    cleaner = LogCleaner(manager=manager, clock=ManualClock(10_000), random=Random(1))
    while (steps := cleaner.clean_next()) is not None:
        list(steps)
    return cleaner


def check_whole(files: FaultyFiles, before: list[Record]) -> None:
    """Start anew, and clean to the end."""
    manager = started(files, [])
    log = manager.logs()[NAME]
    log.update_high_watermark(log.log_end_offset)
    found = records_of_log(log)
    assert set(found) <= set(before)
    assert latest_values(found) == latest_values(before)
    assert clean(manager).uncleanable == {}
    assert manager.cleaned_to(log) == log.active.base_offset
    left = records_of_log(log)
    assert latest_values(left) == latest_values(before)
    assert log.log_end_offset == before[-1][0] + 1
    assert not [name for name in files.names("d/foo-0") if name.endswith((".cleaned", ".swap"))]


@pytest.mark.parametrize("loses_power", [False, True])
def test_any_call_that_fails_takes_the_directory_offline_and_nothing_is_lost(loses_power: bool) -> None:
    at, fails = 0, True
    with without_logs():
        while fails:
            failed: list[int | None] = []
            files = FailingFiles(Random(at))
            manager = started(files, failed)
            before = records_of_log(filled(manager))
            files.fail_after = at
            cleaner = clean(manager)
            fails, files.fail_after = bool(failed), None
            assert (failed, list(manager.offline)) == (([errno.EIO], ["d"]) if fails else ([], []))
            assert cleaner.uncleanable == {}
            (files.power_cut if loses_power else files.restart)()
            check_whole(files, before)
            at += 1
    assert at > 60


def test_a_disk_that_is_full_in_the_middle_of_a_cleaning_loses_nothing() -> None:
    space, is_full = 0, True
    with without_logs():
        while is_full:
            failed: list[int | None] = []
            files = FaultyFiles(Random(space))
            manager = started(files, failed)
            before = records_of_log(filled(manager))
            files.space["d"] = space
            assert clean(manager).uncleanable == {}
            is_full = bool(failed)
            assert failed == ([errno.ENOSPC] if is_full else [])
            files.space.clear()
            files.restart()
            check_whole(files, before)
            space += 10
    assert space > 200


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_without_descriptors_cleans_later(tmp_path: Path) -> None:
    failed: list[int | None] = []
    manager = started(DiskFiles(), failed, str(tmp_path / "d"))
    log = filled(manager)
    before = records_of_log(log)
    cleaner = LogCleaner(manager=manager, clock=ManualClock(10_000), random=Random(1))
    steps = cleaner.clean_next()
    assert steps is not None
    with without_logs():
        assert next(steps) == 0
        with no_descriptor_left():
            waits = list(steps)
    assert waits[-1] == 15
    assert (failed, cleaner.uncleanable, manager.cleaned_to(log)) == ([], {}, None)
    assert records_of_log(log) == before
    manager.abandon()


@pytest.mark.parametrize("seed", range(1 if QUICK else 10))
def test_a_cleaner_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path, seed: int) -> None:
    chance, has_removed, end = Random(seed), False, 0
    command = [sys.executable, "-m", "tests.replica_manager.logs.cleaning.doomed_cleaner", str(tmp_path / "d")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        for _ in range(KILLS):
            nursery.stdin.write(f"{chance.randrange(1 << 32)}\n")
            nursery.stdin.flush()
            acknowledged = end
            while not (line := nursery.stdout.readline()).startswith("dead"):
                assert line, "the cleaner's parent has died"
                acknowledged = int(line)
            assert line.split() == ["dead", "9"]
            manager, log = opened_log(tmp_path / "d", DiskFiles())
            assert log.log_end_offset >= acknowledged
            end = log.log_end_offset
            found = {offset: (key, value) for offset, _, key, value in records_of_log(log)}
            assert all(content == (key_of(at), value_of(at)) for at, content in found.items())
            assert {key_of(at): at for at in range(end)} == {key_of(at): at for at in sorted(found)}
            has_removed = has_removed or len(found) < end
            manager.abandon()
        nursery.stdin.close()
    assert has_removed
    assert end > 4 * KILLS
