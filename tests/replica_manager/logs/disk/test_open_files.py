"""Log files of which few have a descriptor at a time, and a process that has none left."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from kraftlake.replica_manager.logs.disk.open_files import OpenFiles


def descriptors(folder: Path) -> int:
    """How many descriptors of this process lead into a folder."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += str(link.readlink()).startswith(str(folder))
        except FileNotFoundError:  # the one that lists the folder
            continue
    return found


def test_files_that_were_used_last_have_the_descriptors_and_all_can_be_used(tmp_path: Path) -> None:
    files = OpenFiles(most=3)
    made = [files.open(f"{tmp_path}/{number}") for number in range(10)]
    for turn in range(2):
        for number, file in enumerate(made):
            file.append(b"%d-%d " % (turn, number))
            assert descriptors(tmp_path) == 3
    made[4].truncate(4)
    made[5].sync()
    assert [file.read(0, 100) for file in made[3:6]] == [b"0-3 1-3 ", b"0-4 ", b"0-5 1-5 "]
    assert files.open(f"{tmp_path}/4").size == 4
    made[9].close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        made[9].read(0, 1)
    assert descriptors(tmp_path) <= 3


def test_a_file_is_found_after_its_folder_was_renamed(tmp_path: Path) -> None:
    files = OpenFiles(most=1)
    (tmp_path / "t-0").mkdir()
    one, other = (files.open(f"{tmp_path}/t-0/{name}") for name in ("one", "other"))
    one.append(b"1")
    files.rename(f"{tmp_path}/t-0", f"{tmp_path}/t-0.moved")
    other.append(b"2")
    one.append(b"3")
    assert [(tmp_path / "t-0.moved" / name).read_bytes() for name in ("one", "other")] == [b"13", b"2"]
    assert not (tmp_path / "t-0").exists()


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    files = OpenFiles(most=1)
    one = files.open(f"{tmp_path}/one")
    files.open(f"{tmp_path}/other")
    (tmp_path / "one").unlink()
    with pytest.raises(FileNotFoundError):
        one.append(b"lost")
    assert not (tmp_path / "one").exists()


def test_a_locked_file_keeps_its_descriptor(tmp_path: Path) -> None:
    files = OpenFiles(most=1)
    locked = files.open(f"{tmp_path}/.lock")
    assert locked.lock()
    for number in range(3):
        files.open(f"{tmp_path}/{number}")
    assert descriptors(tmp_path / ".lock") == 1
    locked.close()
    assert descriptors(tmp_path / ".lock") == 0


def test_threads_never_read_or_write_another_file(tmp_path: Path) -> None:
    """A descriptor that is closed for one file is at once that of another."""
    files = OpenFiles(most=2)
    made = [files.open(f"{tmp_path}/{number}") for number in range(8)]

    def work(number: int) -> None:
        for turn in range(200):
            made[number].append(bytes((number,)) * 50)
            assert made[number].read(turn * 50, 50) == bytes((number,)) * 50

    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(work, range(len(made))))
    assert [(tmp_path / str(number)).read_bytes() for number in range(8)] == [bytes((n,)) * 10_000 for n in range(8)]


WITHOUT_DESCRIPTORS = """
    import resource, socket, sys
    from kraftlake.replica_manager.errors import KafkaStorageError
    from kraftlake.replica_manager.logs.disk.files import DiskFiles
    from kraftlake.replica_manager.logs.disk.guarded_files import GuardedFiles
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    failures = []
    files = GuardedFiles(DiskFiles(), sys.argv[1], lambda *failure: failures.append(failure))
    made = [files.open(f"{sys.argv[1]}/{number}") for number in range(20)]
    sockets = []
    try:
        while True:
            sockets.append(socket.socket())
    except OSError:
        pass
    for number in range(20, 60):
        made.append(files.open(f"{sys.argv[1]}/{number}"))
    files.write_whole(f"{sys.argv[1]}/checkpoint", b"all")
    for file in made:
        file.append(b"sound")
    try:
        while True:
            sockets.append(socket.socket())
    except OSError:
        pass
    for file in made:
        file.close()
    try:
        while True:
            sockets.append(socket.socket())
    except OSError:
        pass
    try:
        files.open(f"{sys.argv[1]}/more")
    except KafkaStorageError as error:
        print(error)
    sockets.clear()
    files.open(f"{sys.argv[1]}/more").append(b"sound")
    print(files.failed, failures)
"""


def test_a_process_without_descriptors_gives_up_those_of_idle_files_and_no_directory_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-c", dedent(WITHOUT_DESCRIPTORS), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    refused, last = done.stdout.splitlines()
    assert refused.startswith(f"{tmp_path}/more can't be opened: this process, or the machine, has as many files")
    assert last == "False []"
    assert {(tmp_path / str(number)).read_bytes() for number in range(60)} == {b"sound"}
    assert (tmp_path / "checkpoint").read_bytes() == b"all"
