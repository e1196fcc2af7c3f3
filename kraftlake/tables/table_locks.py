"""Locks of derived tables: one process at a time writes a table.

An object store has no locks that end with their process: there, a second run fails at its commit (`LakeTable`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.errors import LakeError

JOBS_FOLDER = "_spark"
"""The folder of a lake that holds the locks of tables and the checkpoints of streams. It can be deleted at any time."""


@contextmanager
def hold_tables(lake: Location, names: Sequence[str]) -> Iterator[None]:
    """Hold the locks of tables of a lake; they end with the process.

    Raises LakeError where another process writes one of them, or the lake can't be written.
    """
    if isinstance(lake, ObjectPath):
        yield
        return
    folder = lake / JOBS_FOLDER
    with ExitStack() as stack:
        for name in sorted(names):
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                path = folder / f"{name}.lock"
                lock = stack.enter_context(open(path, "w", opener=_for_the_user_alone))
            except OSError as fault:
                raise LakeError(f"{folder} can't be written: {fault.strerror or fault}") from fault
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LakeError(f"another run writes {name}/ of {lake}: wait until it ends, or stop it") from None
        yield


def _for_the_user_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
