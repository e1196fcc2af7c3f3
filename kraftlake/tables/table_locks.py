"""Locks of derived tables: one process at a time writes a table.

An object store has no locks that end with their process: there, a second run fails at its commit (`LakeTable`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.errors import LakeError, TooEarlyError

JOBS_FOLDER = "_spark"
"""The folder of a lake that holds the locks of tables and the checkpoints of streams. It can be deleted at any time."""


@contextmanager
def hold_tables(lake: Location, names: Sequence[str]) -> Iterator[None]:
    """Hold the locks of tables of a lake; they end with the process.

    Raises TooEarlyError where another process writes one of them, LakeError if the lake can't be written.
    """
    with _hold(lake, {name: f"another run writes {name}/ of {lake}" for name in names}):
        yield


@contextmanager
def hold_upkeep(lake: Location) -> Iterator[None]:
    """Hold the lock of what removes old things from a lake; it ends with the process. Raises as `hold_tables`."""
    with _hold(lake, {"upkeep": f"another upkeep removes what {lake} no longer keeps"}):
        yield


@contextmanager
def _hold(lake: Location, busy: Mapping[str, str]) -> Iterator[None]:
    if isinstance(lake, ObjectPath):
        yield
        return
    folder = lake / JOBS_FOLDER
    with ExitStack() as stack:
        for name, held in sorted(busy.items()):
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                path = folder / f"{name}.lock"
                lock = stack.enter_context(open(path, "w", opener=_for_the_user_alone))
            except OSError as fault:
                raise LakeError(f"{folder} can't be written: {fault.strerror or fault}") from fault
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise TooEarlyError(f"{held}: wait until it ends, or stop it") from None
        yield


def _for_the_user_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
