"""A commit of upkeep beside a writer: in a conflict upkeep plans again and retries, never the writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kraftlake.metadata_log.delta_table.commit import CommitConflictError, commit, commit_info, now_ms
from kraftlake.metadata_log.delta_table.table_state import TableState, read_table
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.runtime.errors import LakeError

_ATTEMPTS = 10_000


def commit_beside_writers(
    disk: Disk, state: TableState, make: Callable[[TableState], Sequence[dict[str, Any]] | None]
) -> TableState | None:
    """Commit the actions that `make` returns for the newest state; after a conflict it is called with the new state.

    Returns None when `make` does: the plan is obsolete. Else the state after the commit, which may be another object
    than `state`. Raises LakeError when the disk refuses.
    """
    for _ in range(_ATTEMPTS):
        actions = make(state)
        if actions is None:
            return None
        try:
            commit(disk, state, actions)
        except CommitConflictError:
            try:
                state.advance()
            except LakeError:
                state = read_table(state.path)
        else:
            return state
    raise LakeError(f"{state.path} was written to by others {_ATTEMPTS:,} times in a row; try again.")


def upkeep_info(operation: str, parameters: dict[str, str]) -> dict[str, Any]:
    """The commitInfo of a commit that is no append."""
    info = commit_info(operation, parameters, now_ms())
    info["commitInfo"]["isBlindAppend"] = False
    return info
