"""Following a table from a version that is known: by name, anew where that is cleaned up, never into another table.

A lake may be deleted, replaced, or restored to an earlier state while nodes follow it and write to it. What they know
is of no use then, and what they would commit after it would be a version in the middle of nowhere.
"""

from __future__ import annotations

import contextlib

from kraftlake.metadata_log.delta_table.table_state import (
    LOG_FOLDER,
    NotADeltaTableError,
    TableState,
    commit_path,
    list_log,
    read_table,
)
from kraftlake.metadata_log.storage.location import Location, is_there
from kraftlake.runtime.errors import LakeError, RefusedReadError


class ReplacedTableError(LakeError):
    """What lies at a table's place is not what was followed there."""

    def __init__(self, path: Location, version: int) -> None:
        super().__init__(
            f"{path} is no longer the table that was read there up to version {version}: it was deleted, or another "
            f"lake or an earlier state of this one was put in its place; start everything anew that uses the lake."
        )


def follow(state: TableState) -> TableState:
    """The table at its newest version: `state`, advanced, or a new one where the commits can't be followed one by one.

    Raises ReplacedTableError, and what `read_table` raises.
    """
    try:
        state.advance()
    except RefusedReadError:
        raise
    except LakeError:
        try:
            newest = read_table(state.path)
        except NotADeltaTableError as fault:
            raise ReplacedTableError(state.path, state.version) from fault
        if newest.metadata.id != state.metadata.id or newest.version < state.version:
            raise ReplacedTableError(state.path, state.version) from None
        return newest
    return state


def was_passed(state: TableState) -> bool:
    """Whether later versions than that of `state` are there, so that the name of the next one may only look free.

    The oldest commits are cleaned up first: while that of `state` is there, no later one was. This is one look at a
    name, and a listing where that is gone. Raises ReplacedTableError, RefusedReadError.
    """
    with contextlib.suppress(RefusedReadError):  # a listing tells, too
        if state.version < 0 or is_there(commit_path(state.path, state.version)):
            return False
    commits, checkpoints = list_log(state.path / LOG_FOLDER, after=state.version - 1)
    newest = max([*commits, *checkpoints], default=-1)
    if newest < state.version:
        raise ReplacedTableError(state.path, state.version)
    return newest > state.version
