"""The simulated disk of a lake: what nodes read of it fails or is cut off, and what others read does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import scheduler as scheduling
from simulator.lake_disk import LakeDisk
from simulator.lake_store import LakeTrouble
from simulator.patching import patched
from simulator.scheduler import SECOND, Process, Scheduler

_CONTENT = b"0123456789" * 5


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LakeDisk]:
    scheduler = Scheduler(1)
    scheduling.activate(scheduler)
    made = LakeDisk(scheduler, tmp_path / "root")
    made.copy_of({"lake/file": _CONTENT})
    with patched({}, made.hooks()):
        yield made
    scheduling.activate(None)


def in_process(disk: LakeDisk, act: Callable[[], Any], **extra: Any) -> Any:
    """What a process does, and how it ends: by a value or an OSError."""
    process, found = Process(disk.scheduler, "process"), []
    process.extra.update(extra)

    def run() -> None:
        try:
            found.append(act())
        except OSError as fault:
            found.append(fault)

    disk.scheduler.start(process, "main", run)
    disk.scheduler.run(disk.scheduler.now_ns + SECOND)
    return found[0]


@pytest.mark.parametrize("name", ["read_bytes", "exists", "stat"])
def test_reads_of_a_node_fail_until_the_disk_is_well(disk: LakeDisk, name: str) -> None:
    act = getattr(disk.root / "lake" / "file", name)
    disk.trouble = LakeTrouble(fails=1.0)
    assert isinstance(in_process(disk, act, node=1), OSError)
    assert act()
    assert not isinstance(in_process(disk, act), OSError), "a client is no node"
    disk.trouble = LakeTrouble()
    assert not isinstance(in_process(disk, act, node=1), OSError)
    assert disk.hits == 1


def test_one_node_reads_parts_of_files(disk: LakeDisk) -> None:
    file = disk.root / "lake" / "file"
    trouble = LakeTrouble(short=1.0)
    reads = [in_process(disk, file.read_bytes, node=1, lake_trouble=trouble) for _ in range(5)]
    assert all(_CONTENT.startswith(data) for data in reads)
    assert min(map(len, reads)) < len(_CONTENT)
    assert in_process(disk, file.read_bytes, node=2) == _CONTENT


def test_a_disk_on_which_no_read_succeeds_can_be_written_to(disk: LakeDisk) -> None:
    file = disk.root / "lake" / "new"
    disk.trouble = LakeTrouble()
    trouble = LakeTrouble(fails=1.0)
    assert in_process(disk, lambda: disk.put_if_absent(file, _CONTENT), node=1, lake_trouble=trouble) is None
    assert file.read_bytes() == _CONTENT
