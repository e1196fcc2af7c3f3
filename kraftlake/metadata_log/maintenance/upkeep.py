"""The upkeep of a whole lake, once by a command or periodically by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import attrs

from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
from kraftlake.metadata_log.maintenance.checkpointing import CleanUp, checkpoint_if_due, clean_up_commits
from kraftlake.metadata_log.maintenance.compaction import Compaction, compact, compact_rows
from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
from kraftlake.metadata_log.maintenance.trimming import (
    Trim,
    check_derived,
    check_start,
    declare_stream_lag,
    restore_append_only,
    trim,
    trim_preview,
)
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.maintenance.vacuum import Vacuum, vacuum
from kraftlake.metadata_log.storage.disk import Disk, disk_for
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.process_setup import return_freed_memory

logger = get_logger(__name__)


@attrs.frozen(kw_only=True)
class UpkeepReport:
    """The result of one round of upkeep: `compaction` of the log, `derived` of its derived tables, by name.

    `checkpoints` are the versions of the checkpoints written, by table.
    """

    compaction: Compaction
    derived: dict[str, Compaction]
    checkpoints: dict[str, int]
    cleaned_up: CleanUp


class Upkeep:
    """The upkeep of one lake, concurrent with its writers; any number may run, one is enough.

    Opening raises LakeError if the path is not a lake.
    """

    def __init__(self, lake: str | Location, policy: UpkeepPolicy | None = None, *, disk: Disk | None = None) -> None:
        self._lake = lake_location(lake)
        self._disk = disk or disk_for(self._lake)
        self._policy = policy or UpkeepPolicy()
        MetadataLog.open(self._lake, disk=self._disk)

    @property
    def policy(self) -> UpkeepPolicy:
        """The bounds of the upkeep."""
        return self._policy

    def run(self, *, force_checkpoint: bool = False) -> UpkeepReport:
        """Compact, write checkpoints that are due, clean up the commits before them; raises LakeError.

        The log comes first, then its derived tables: a fault in a derived table does not delay the log.
        """
        log = self._lake / LOG_TABLE
        for name in (LOG_TABLE, SNAPSHOTS_TABLE):
            with suppress(NotADeltaTableError):
                restore_append_only(self._disk, read_table(self._lake / name))
        compaction = compact(log, self._disk, self._policy)
        made_of_it = {table.name: table for table in derived_tables(self._lake, read_table(log))}
        derived: dict[str, Compaction] = {}
        checkpoints: dict[str, int] = {}
        commits = old_checkpoints = 0
        for name in (LOG_TABLE, SNAPSHOTS_TABLE, *made_of_it):
            table = self._lake / name
            try:
                if name in made_of_it and made_of_it[name].grows_by_offset:
                    derived[name] = compact_rows(table, self._disk, self._policy)
                written = checkpoint_if_due(table, self._disk, self._policy, force=force_checkpoint)
            except NotADeltaTableError:
                continue
            if written is not None:
                checkpoints[name] = written
            cleaned_up = clean_up_commits(table, self._disk, self._policy)
            commits += cleaned_up.commits
            old_checkpoints += cleaned_up.checkpoints
        return UpkeepReport(
            compaction=compaction,
            derived=derived,
            checkpoints=checkpoints,
            cleaned_up=CleanUp(commits=commits, checkpoints=old_checkpoints),
        )

    def vacuum(self, *, dry_run: bool = False) -> Vacuum:
        """Delete the files that no version needs any more, in all tables; see `vacuum`."""
        done = Vacuum()
        derived = derived_tables(self._lake, read_table(self._lake / LOG_TABLE))
        for name in (LOG_TABLE, SNAPSHOTS_TABLE, *(table.name for table in derived)):
            try:
                found = vacuum(self._lake / name, self._disk, self._policy, dry_run=dry_run)
            except NotADeltaTableError:
                continue
            done = Vacuum(
                removed=done.removed + found.removed, orphans=done.orphans + found.orphans, kept=done.kept + found.kept
            )
        return done

    def trim(
        self, before: int, *, stream_lag_ms: int | None = None, force: bool = False, dry_run: bool = False
    ) -> Trim:
        """Remove the files that hold only offsets below `before`; see `trim`. With `dry_run` nothing is written.

        `stream_lag_ms` is declared first, if the log may be trimmed to that offset. Raises as `trim` does, and
        LakeError if a derived table has yet to read the removed offsets, unless `force` is given.
        """
        table = self._lake / LOG_TABLE
        snapshots = MetadataLog.open(self._lake, disk=self._disk).snapshots()
        ends = [snapshot.end_offset for snapshot in snapshots if snapshot.damage() is None]
        state = read_table(table)
        check_start(state, before, ends)
        if not force:
            check_derived(state, before, ends, derived_tables(self._lake, state))
        if dry_run:
            return trim_preview(state, before)
        if stream_lag_ms is not None:
            declare_stream_lag(table, self._disk, stream_lag_ms)
        return trim(table, self._disk, before, ends)


class UpkeepThread:
    """Runs the upkeep of a lake each `interval` seconds, concurrent with a writer, until it is closed.

    A context manager. With `due`, a round is skipped if `due` returns False: of several processes one is enough. Each
    round begins with `remove`, which removes what the lake's policy does not keep. A failed round is logged and
    retried: late upkeep costs time, not data. Raises UsageError for an exclusive upkeep.
    """

    def __init__(
        self,
        upkeep: Upkeep,
        *,
        interval: float = 10.0,
        due: Callable[[], bool] = lambda: True,
        remove: Callable[[], object] = lambda: None,
    ) -> None:
        if upkeep.policy.exclusive:
            raise UsageError("An exclusive upkeep can't run beside a writer: it would take the files of its commits.")
        self._upkeep = upkeep
        self._interval = interval
        self._due = due
        self._remove = remove
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kraftlake-upkeep", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.wait(self._interval):
            if not self._due():
                continue
            for work in (self._remove, self._upkeep.run, self._upkeep.vacuum):
                try:
                    work()
                except Exception as fault:  # the next round may succeed
                    logger.warning("upkeep_failed", reason=str(fault) or type(fault).__name__)
            return_freed_memory()  # a round reads the table's whole state

    def close(self) -> None:
        """End the thread after the round in progress."""
        self._closed.set()
        self._thread.join()

    def __enter__(self) -> UpkeepThread:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
