"""States of shards from which no run goes on any more, and their removal."""

from __future__ import annotations

from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
from kraftlake.metadata_log.storage.disk import Disk, disk_fault
from kraftlake.metadata_log.storage.location import Location, folders_of, modified_ms
from kraftlake.runtime.errors import TooEarlyError
from kraftlake.tables.shards.state_files import delete_states, offset_of_states, states_of
from kraftlake.tables.table_locks import hold_tables


def delete_stale_states(
    lake: Location, log: TableState, disk: Disk, *, age_ms: int, dry_run: bool = False
) -> tuple[str, ...]:
    """Delete states after an offset at which no table of the lake ends: a run goes on from where its tables end.

    Returns the names of their tables, sorted. States with a file that is younger than `age_ms`, or whose table a run
    holds, stay: the run may be writing them. Raises LakeError if the disk refuses.
    """
    found = folders_of(states_of(lake))
    if not found:
        return ()
    needed = {table.covers for table in derived_tables(lake, log)} - {None}
    stale = [folder.name for folder in found if offset_of_states(lake, folder.name, log.metadata.id) not in needed]
    return tuple(name for name in stale if _delete(lake, name, log, disk, age_ms=age_ms, dry_run=dry_run))


def _delete(lake: Location, name: str, log: TableState, disk: Disk, *, age_ms: int, dry_run: bool) -> bool:
    folder = states_of(lake) / name
    now = disk.clock.milliseconds()
    try:
        if any(now - modified_ms(path) < age_ms for path in folder.iterdir()):
            return False
        if not dry_run:
            with hold_tables(lake, [name]):
                needed = {table.covers for table in derived_tables(lake, log)}
                if offset_of_states(lake, name, log.metadata.id) in needed - {None}:
                    return False  # of a run that has ended meanwhile
                delete_states(lake, name)
    except (TooEarlyError, FileNotFoundError):  # a run holds it, or has just replaced a file
        return False
    except OSError as fault:
        raise disk_fault(folder, fault) from fault
    return True
