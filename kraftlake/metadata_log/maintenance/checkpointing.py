"""Writing of checkpoints that are due, and deletion of the commits before them; never during an append."""

from __future__ import annotations

import attrs

from kraftlake.metadata_log.delta_table.checkpoint import read_checkpoint
from kraftlake.metadata_log.delta_table.checkpoint_writer import write_checkpoint
from kraftlake.metadata_log.delta_table.commit import now_ms
from kraftlake.metadata_log.delta_table.delta_log import hinted_checkpoint, list_log, read_table
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, commit_path
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy, max_stream_lag_ms
from kraftlake.metadata_log.snapshots.snapshot_table import without_deleted
from kraftlake.metadata_log.storage.disk import Disk, disk_fault
from kraftlake.metadata_log.storage.location import Location, modified_ms

_KEPT_CHECKPOINTS = 2


@attrs.frozen(kw_only=True)
class CleanUp:
    """The number of files that a clean-up deleted, by kind."""

    commits: int
    checkpoints: int


def checkpoint_if_due(table: Location, disk: Disk, policy: UpkeepPolicy, *, force: bool = False) -> int | None:
    """Write a checkpoint of the table's newest version if one is due, or with `force`.

    Returns the version, None if no checkpoint was due. Raises LakeError as `read_table` and `write_checkpoint` do.
    """
    state = read_table(table)
    commits = state.version - max(state.checkpoint_version, 0)
    if commits == 0 or not (force or policy.checkpoint_is_due(commits, len(state.files))):
        return None
    state.transactions = without_deleted(state.transactions)
    removed_since = now_ms() - max(max_stream_lag_ms(state.metadata.configuration), policy.orphan_age_ms)
    write_checkpoint(disk, state, removed_since=removed_since)
    return state.version


def clean_up_commits(table: Location, disk: Disk, policy: UpkeepPolicy) -> CleanUp:
    """Delete the commits before the newest checkpoint that no stream within the declared lag still has to read.

    The oldest are deleted first, so that an interruption leaves no hole; one older checkpoint is kept. A writer
    suspended for longer than a commit is kept would find the name of its version free again: the writer first checks
    the previous version, which is gone by then, and no commit younger than the orphans' age is deleted. Raises
    CorruptDataError, and deletes nothing, if the checkpoint is torn.
    """
    log = table / LOG_FOLDER
    hint = hinted_checkpoint(log)
    if hint is None:
        return CleanUp(commits=0, checkpoints=0)
    state = read_table(table)
    # The checkpoint that the hint names may be torn: then the table was read from an older one, or from commits alone.
    newest = min(hint, state.checkpoint_version)
    before = now_ms() - max(max_stream_lag_ms(state.metadata.configuration), policy.orphan_age_ms)
    commits, checkpoints = list_log(log)
    if newest in checkpoints:
        len(read_checkpoint(checkpoints[newest]).files)  # raises where it can't stand for the commits before it
    old = [version for version in sorted(checkpoints)[:-_KEPT_CHECKPOINTS] if version < newest]
    gone = 0
    try:
        for version in sorted(commits):
            path = commit_path(table, version)
            if version >= newest - policy.keep_commits or modified_ms(path) > before:
                break
            disk.unlink(path)
            gone += 1
        for path in (path for version in old for path in checkpoints[version]):
            disk.unlink(path)
    except FileNotFoundError:
        pass  # another upkeep cleans up at the same time
    except OSError as fault:
        raise disk_fault(log, fault) from fault
    return CleanUp(commits=gone, checkpoints=len(old))
