from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table.commit import UnknownOutcomeError
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.runtime.errors import CorruptDataError, LakeError
from simulator.forgetful_disk import ForgetfulDisk, PowerCut
from tests.few_examples import few_examples
from tests.metadata_log.doomed_writer import batches_at
from tests.metadata_log.log_batches import snapshot_batches
from tests.metadata_log.test_crashes import expected

LIFETIMES = 6
OPERATIONS = 45
TRIES = 60


class Lost(AssertionError):  # noqa: N818
    """Something that was acknowledged isn't there any more."""


def opened(path: Path, disk: ForgetfulDisk, acknowledged: int) -> MetadataLog:
    """The lake, made where no creation was acknowledged yet."""
    try:
        return MetadataLog.open(path, disk=disk)
    except LakeError as fault:
        if acknowledged >= 0:
            raise Lost(str(fault)) from fault
        return MetadataLog.create(path, disk=disk)


def live(root: Path, disk: ForgetfulDisk, chance: random.Random) -> int:
    """Lives of a writer, each ended by a power cut; raises Lost when what one left isn't all that it acknowledged.

    Returns how far the log got.
    """
    path = root / "lake"
    acknowledged = -1
    snapshots: list[int] = []
    for _ in range(LIFETIMES):
        disk.cut_at = chance.randrange(OPERATIONS)
        try:
            log = opened(path, disk, acknowledged)
            acknowledged = log.end_offset
            while True:
                log.append(batches_at(acknowledged), committed_to=acknowledged)
                acknowledged = log.end_offset
                if chance.random() < 0.2:
                    batches = snapshot_batches(acknowledged % 9 + 1)
                    log.add_snapshot(
                        SnapshotFacts(end_offset=acknowledged, epoch=1, last_contained_log_timestamp=0), batches
                    )
                    snapshots.append(acknowledged)
        except PowerCut:
            disk.restart(chance)
        if acknowledged >= 0:
            check(path, acknowledged, snapshots)
    return acknowledged


def check(path: Path, acknowledged: int, snapshots: list[int]) -> None:
    try:
        log = MetadataLog.open(path)
    except LakeError as fault:
        raise Lost(str(fault)) from fault
    if log.end_offset < acknowledged or list(log.batches()) != expected(0, log.end_offset):
        raise Lost(f"{acknowledged} were acknowledged, {log.end_offset} are there")
    kept = {snapshot.end_offset: list(snapshot.batches()) for snapshot in log.snapshots()}
    if not kept.keys() >= set(snapshots):
        raise Lost(f"snapshots {snapshots} were acknowledged, {sorted(kept)} are there")
    assert all(batches == snapshot_batches(end_offset % 9 + 1) for end_offset, batches in kept.items())


@few_examples
@given(seed=st.integers(0, 2**32))
def test_what_was_acknowledged_survives_power_cuts(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    root = tmp_path_factory.mktemp("cuts")
    live(root, ForgetfulDisk(root), random.Random(seed))


class DyingDisk(ForgetfulDisk):
    """A disk on which a process dies after it has made a commit visible, and before it has made it durable."""

    dies = False

    def fsync(self, path: Path) -> None:
        if self.dies and path.name == "_delta_log":
            raise OSError(errno.EIO, "the process is gone")
        super().fsync(path)


@few_examples
@given(seed=st.integers(0, 2**32))
def test_no_power_cut_leaves_a_gap_behind_a_writer_that_died_before_its_commit_was_durable(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    root, chance = tmp_path_factory.mktemp("cuts"), random.Random(seed)
    disk, path = DyingDisk(root), root / "lake"
    log = MetadataLog.create(path, disk=disk)
    log.append(batches_at(0), committed_to=0)
    acknowledged = log.end_offset
    disk.dies = True
    with pytest.raises(UnknownOutcomeError):
        log.append(batches_at(acknowledged), committed_to=acknowledged)
    disk.dies = False
    other = MetadataLog.open(path, disk=disk)
    assert other.end_offset > acknowledged
    disk.cut_at = chance.randrange(12)
    try:
        for _ in range(2):
            other.append(batches_at(other.end_offset), committed_to=other.end_offset)
            acknowledged = other.end_offset
    except PowerCut:
        disk.restart(chance)
    check(path, acknowledged, [])


def replace_until_the_power_is_cut(root: Path, disk: ForgetfulDisk, chance: random.Random) -> None:
    """Lives of a file that is replaced again and again; raises Lost when a cut leaves another content than it may."""
    path = root / "hint"
    contents = [b"content %d" % number * 9 for number in range(40)]
    latest = -1
    for _ in range(LIFETIMES):
        disk.cut_at = chance.randrange(12)
        acknowledged = latest
        try:
            while True:
                disk.replace(path, contents[latest + 1])
                acknowledged = latest = latest + 1
        except PowerCut:
            disk.restart(chance)
        allowed = contents[max(acknowledged, 0) : acknowledged + 2]
        if not path.exists():
            if acknowledged >= 0:
                raise Lost("the file is gone")
            continue
        if (found := path.read_bytes()) not in allowed:
            raise Lost(f"{acknowledged} was acknowledged, {found!r} is there")
        latest = contents.index(found)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_a_replaced_file_is_whole_after_power_cuts_and_not_older_than_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    root = tmp_path_factory.mktemp("cuts")
    replace_until_the_power_is_cut(root, ForgetfulDisk(root), random.Random(seed))


@pytest.mark.parametrize("ignored", [".tmp", "root"])
def test_without_either_of_its_fsyncs_a_rename_would_leave_a_torn_or_an_old_file(
    tmp_path_factory: pytest.TempPathFactory, ignored: str
) -> None:
    def runs() -> None:
        for seed in range(TRIES):
            root = tmp_path_factory.mktemp("careless") / "root"
            root.mkdir()
            replace_until_the_power_is_cut(root, ForgetfulDisk(root, ignored), random.Random(seed))

    with pytest.raises(Lost):
        runs()


def test_the_lives_in_these_tests_get_somewhere(tmp_path: Path) -> None:
    assert live(tmp_path, ForgetfulDisk(tmp_path), random.Random(5)) > 20


@pytest.mark.parametrize("ignored", [".parquet", "log", ".tmp", "_delta_log", "snapshots", "lake"])
def test_without_any_one_of_its_fsyncs_the_log_would_lose_what_it_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, ignored: str
) -> None:
    def runs() -> None:
        for seed in range(TRIES):
            root = tmp_path_factory.mktemp("careless")
            live(root, ForgetfulDisk(root, ignored), random.Random(seed))

    with pytest.raises((Lost, CorruptDataError)):
        runs()
