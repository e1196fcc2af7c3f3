"""The temporary folder in which a lake is created, and the removal of folders that killed runs have left."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A new folder next to `path`, removed at the end if it still exists. Folders of killed runs are removed first.

    A run holds a lock on its folder, so that no other run removes it. Raises OSError if no folder can be created.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.unfinished"):
        _remove_if_left(left)
    folder, lock = _locked_folder(path)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(path: Path) -> tuple[Path, int]:
    while True:
        folder = path.with_name(f".{path.name}.{uuid.uuid4()}.unfinished")
        folder.mkdir(mode=0o700)
        lock = -1
        with suppress(FileNotFoundError):  # another run removed it before it was locked
            lock = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks: other runs keep folders that they can't lock
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
        if lock >= 0:
            os.close(lock)


def _remove_if_left(folder: Path) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # its run is at work
    finally:
        os.close(lock)
