"""Deletion of snapshots of a lake: one commit, after which no reader finds them; a vacuum deletes their files later."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraftlake.metadata_log.delta_table.actions import transaction
from kraftlake.metadata_log.delta_table.commit import commit_beside_writers, commit_info, now_ms
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.maintenance.derived_tables import APPEND_ONLY
from kraftlake.metadata_log.maintenance.trimming import restore_append_only, set_properties
from kraftlake.metadata_log.snapshots.snapshot_table import DELETED, LakeSnapshot, SnapshotTable, records_fact
from kraftlake.metadata_log.storage.disk import Disk


def delete_snapshots(table: SnapshotTable, disk: Disk, end_offsets: Collection[int]) -> list[LakeSnapshot]:
    """Delete snapshots, all of them or none; returns those that were there.

    One whose rows share a file with those of another one stays. Readers that have begun to read a snapshot go on: its
    files stay for the declared stream lag. If this is killed, the next upkeep restores the table's property. Raises
    LakeError if the disk refuses.
    """
    chosen = table.with_own_files(end_offsets)
    if not chosen:
        return []
    names = {snapshot.name for snapshot in chosen}
    state = set_properties(disk, table.state, {APPEND_ONLY: "false"})
    deleted: list[LakeSnapshot] = []

    def actions(now: TableState) -> list[dict[str, Any]] | None:
        nonlocal deleted
        current = SnapshotTable(now, disk)
        deleted = [one for one in current.with_own_files(end_offsets) if one.name in names]
        if not deleted or now.metadata.configuration.get(APPEND_ONLY) != "false":
            deleted = []
            return None
        time = now_ms()
        files = {name for snapshot in deleted for name, _ in snapshot.data_files}
        return [
            commit_info("DELETE", {"predicate": str([snapshot.name for snapshot in deleted])}),
            *(transaction(records_fact(snapshot), DELETED, time) for snapshot in deleted),
            *(now.files[name].to_remove(time, data_change=True) for name in sorted(files)),
        ]

    try:
        done = commit_beside_writers(disk, state, actions)
    except BaseException:
        restore_append_only(disk, state)
        raise
    restore_append_only(disk, state if done is None else done)
    return deleted
