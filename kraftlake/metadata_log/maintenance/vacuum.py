"""Deletion of files that no version of a table names and no reader may still need."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy, max_stream_lag_ms
from kraftlake.metadata_log.storage.disk import Disk, disk_fault
from kraftlake.metadata_log.storage.location import Location, modified_ms


@attrs.frozen(kw_only=True)
class Vacuum:
    """The result of a vacuum: `removed` were compacted or trimmed, `orphans` left by crashes, `kept` too young."""

    removed: int = 0
    orphans: int = 0
    kept: int = 0


def vacuum(table: Location, disk: Disk, policy: UpkeepPolicy, *, dry_run: bool = False) -> Vacuum:
    """Delete the files that a table removed longer ago than the maximum stream lag, and the orphans of crashes.

    An orphan is a data file that no version names, or a temporary file, older than the policy's bound: a younger one
    may belong to a commit in progress. Files are listed before the table is read, so that a file committed in between
    counts as live. A commit that still comes too late finds its file gone, and is not made (`commit`). With `dry_run`
    no file is deleted. Raises LakeError if the disk refuses.
    """
    try:
        found = [path for path in table.iterdir() if path.suffix == ".parquet"]
        found += [path for path in (table / LOG_FOLDER).iterdir() if _is_temporary(path.name)]
    except FileNotFoundError:
        return Vacuum()  # a table that the lake does not have yet
    except OSError as fault:
        raise disk_fault(table, fault) from fault
    state = read_table(table)
    live = set(state.files)
    now = disk.clock.milliseconds()
    promised = max(max_stream_lag_ms(state.metadata.configuration), policy.orphan_age_ms)
    tombstones = state.tombstones.since(0)
    removed: list[Location] = []
    orphans: list[Location] = []
    kept = 0
    for path in found:
        if path.name in live:
            continue
        tombstone = tombstones.get(path.name)
        # A file without a time of removal, or without a tombstone, is judged by its own age.
        gone_at = None if tombstone is None else tombstone.deletion_timestamp
        bound = policy.orphan_age_ms if tombstone is None else promised
        if (_age_of(path, now) if gone_at is None else now - gone_at) < bound:
            kept += 1
        else:
            (orphans if tombstone is None else removed).append(path)
    if not dry_run:
        _delete(disk, removed)
        # A writer that was suspended for longer than the bound may have gone on, and committed, by now.
        taken_up = read_table(table).files if orphans else {}
        kept += sum(path.name in taken_up for path in orphans)
        orphans = [path for path in orphans if path.name not in taken_up]
        _delete(disk, orphans)
    return Vacuum(removed=len(removed), orphans=len(orphans), kept=kept)


def _delete(disk: Disk, paths: Iterable[Location]) -> None:
    for path in paths:
        try:
            disk.unlink(path)
        except OSError as fault:
            raise disk_fault(path, fault) from fault


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")


def _age_of(path: Location, now: int) -> int:
    try:
        return now - modified_ms(path)
    except FileNotFoundError:
        return 0  # its writer, or another vacuum, took it away meanwhile
