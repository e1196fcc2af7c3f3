from __future__ import annotations

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraftlake.metadata_log.append.commit_queue import GroupLimits
from kraftlake.metadata_log.append.group_commit import GroupCommit
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import FencedEpochError, KraftlakeError, LakeError, QueueFullError


def topic(name: str) -> ApiMessageAndVersion:
    return ApiMessageAndVersion(TopicRecord(name=name, topic_id=Uuid.ZERO), 0)


class GatedDisk(Disk):
    """A disk whose commits wait until they are let through, and say that they wait."""

    def __init__(self) -> None:
        super().__init__("os")
        self.arrived = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.fault: OSError | None = None

    def link(self, source: Path, target: Path) -> None:
        self.arrived.release()
        assert self.gate.acquire(timeout=60)
        if self.fault is not None:
            raise self.fault
        super().link(source, target)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    MetadataLog.create(tmp_path / "lake", "cluster", role="controlled")
    return tmp_path / "lake"


def gated(lake: Path, **limits: int) -> tuple[GroupCommit, GatedDisk]:
    disk = GatedDisk()
    disk.gate.release()
    log = MetadataLog.open(lake, disk=disk)
    epoch = log.claim(1)
    assert disk.arrived.acquire(timeout=60)
    return GroupCommit(log, epoch, limits=GroupLimits(**limits)), disk  # type: ignore[arg-type]


def names(lake: Path) -> list[str]:
    found = []
    for batch in MetadataLog.open(lake).batches():
        found += [part.message.name for part in batch.messages() if isinstance(part.message, TopicRecord)]
    return found


def test_what_comes_while_a_commit_is_made_shares_the_next_one(lake: Path) -> None:
    group, disk = gated(lake)
    first = group.append([topic("a")])
    assert disk.arrived.acquire(timeout=60)
    others = [group.append([topic(f"b{number}")]) for number in range(50)]
    assert not first.done.done()
    disk.gate.release(2)
    assert first.result(60) == 1
    assert [other.result(60) for other in others] == list(range(2, 52))
    group.close()
    assert MetadataLog.open(lake).version == 3
    assert names(lake) == ["a", *(f"b{number}" for number in range(50))]


def test_many_threads_append_and_everything_acknowledged_is_there_once(lake: Path) -> None:
    log = MetadataLog.open(lake, durability="os")
    with GroupCommit(log, log.claim(1), limits=GroupLimits(max_waiting_batches=8)) as group:

        def write(writer: int) -> dict[int, str]:
            said = {}
            for number in range(40):
                name = f"{writer}-{number}"
                said[group.append([topic(name)], wait=None).result(60)] = name
            return said

        with ThreadPoolExecutor(8) as threads:
            said: dict[int, str] = {}
            for part in threads.map(write, range(8)):
                assert not said.keys() & part.keys()
                said |= part
    assert sorted(said) == list(range(1, 321))
    assert names(lake) == [said[offset] for offset in sorted(said)]


def test_too_much_that_waits_pushes_back(lake: Path) -> None:
    group, disk = gated(lake, max_waiting_batches=3)
    waiting = [group.append([topic("a")])]
    assert disk.arrived.acquire(timeout=60)
    waiting += [group.append([topic("b")]), group.append([topic("c")])]
    with pytest.raises(QueueFullError):
        group.append([topic("refused")])
    with ThreadPoolExecutor(1) as threads:
        patient = threads.submit(group.append, [topic("d")], wait=None)
        disk.gate.release(10)
        assert patient.result(60).result(60) == 4
    assert [pending.result(60) for pending in waiting] == [1, 2, 3]
    group.close()
    assert names(lake) == ["a", "b", "c", "d"]


def test_a_fenced_group_commit_fails_everybody_and_takes_nothing_more(lake: Path) -> None:
    log = MetadataLog.open(lake, durability="os")
    failures: list[KraftlakeError] = []
    group = GroupCommit(log, log.claim(1), on_failure=failures.append)
    assert group.append([topic("before")]).result(60) == 1
    MetadataLog.open(lake).claim(2)
    with pytest.raises(FencedEpochError) as caught:
        group.append([topic("late")]).result(60)
    assert (caught.value.epoch, caught.value.current_epoch) == (1, 2)
    group.close()
    assert failures == [caught.value]
    with pytest.raises(FencedEpochError):
        group.append([topic("later")])
    assert names(lake) == ["before"]


def test_an_append_that_fails_takes_with_it_what_waits_behind_it(lake: Path) -> None:
    group, disk = gated(lake)
    disk.fault = OSError(errno.ENOSPC, "No space left on device")
    first = group.append([topic("a")])
    assert disk.arrived.acquire(timeout=60)
    second = group.append([topic("b")])
    disk.gate.release(2)
    for pending in (first, second):
        with pytest.raises(LakeError, match="No space left on device"):
            pending.result(60)
    group.close()
    assert names(lake) == []
    log = MetadataLog.open(lake)
    with GroupCommit(log, log.claim(1)) as again:
        again.append([topic("a")]).result(60)
    assert names(lake) == ["a"]


def test_closing_commits_what_waits_even_before_its_delay_is_over(lake: Path) -> None:
    log = MetadataLog.open(lake, durability="os")
    group = GroupCommit(log, log.claim(1), limits=GroupLimits(max_delay=3600))
    pending = group.append([topic("a")])
    group.close()
    assert pending.result(0) == 1
    with pytest.raises(LakeError, match="is closed"):
        group.append([topic("b")])


def test_a_close_that_takes_too_long_says_so(lake: Path) -> None:
    group, disk = gated(lake)
    pending = group.append([topic("a")])
    with pytest.raises(LakeError, match="was not written to within 0 seconds"):
        group.close(0)
    disk.gate.release()
    group.close()
    assert pending.result(0) == 1
