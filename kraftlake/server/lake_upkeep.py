"""The upkeep of a lake by its declared policy: what is past its window goes, small files become large ones."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, Final

import attrs

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import epoch_milliseconds, offset_span
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
from kraftlake.metadata_log.maintenance.retention import Retention, TimedOffset
from kraftlake.metadata_log.maintenance.snapshot_deletion import delete_snapshots
from kraftlake.metadata_log.maintenance.trimming import Trim, set_properties
from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepReport
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.maintenance.vacuum import Vacuum
from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot, SnapshotTable
from kraftlake.metadata_log.storage.disk import Disk, disk_for
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.replay.loader.image_cache import prune_cache
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import OffsetError, TooEarlyError, sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.server.newest_time import newest_ms
from kraftlake.tables.shards.stale_states import delete_stale_states
from kraftlake.tables.table_locks import hold_upkeep
from kraftlake.tables.trimming import first_offsets, trim_tables

_ROWS: Final = 1_000
"""The number of newest rows of a log that are searched for the latest time."""
_ROUND_NS: Final = 3_600 * 1_000_000_000
_log = get_logger(__name__)


@attrs.frozen(kw_only=True)
class Removal:
    """What a policy removed, or would remove: offsets of the log, rows of tables (None: not counted), snapshots.

    `states` are the tables whose states of shards were of no use to a next run, with a policy or without.
    `held_back` has a sentence for each thing that is past its window, and can't go yet.
    """

    retention: Retention | None
    trim: Trim | None = None
    tables: dict[str, int | None] = attrs.field(factory=dict)
    snapshots: tuple[LakeSnapshot, ...] = ()
    states: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class LakeUpkeepReport:
    """One upkeep of a lake: what its policy removed, and what was put together (None: nothing was written)."""

    removal: Removal
    round: UpkeepReport | None
    vacuum: Vacuum


class LakeUpkeep:
    """The upkeep of one lake, concurrent with its writers and readers. Opening raises LakeError if it is no lake."""

    def __init__(
        self,
        lake: str | Location,
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        policy: UpkeepPolicy | None = None,
    ) -> None:
        self._lake = lake_location(lake)
        self._clock = clock or SystemClock()
        self._disk = disk or disk_for(self._lake)
        self._policy = policy or UpkeepPolicy()
        self._upkeep = Upkeep(self._lake, self._policy, disk=self._disk)
        self._due_ns = 0

    @property
    def retention(self) -> Retention | None:
        """The policy that the lake declares."""
        return Retention.declared_in(read_table(self._lake / LOG_TABLE).metadata.configuration)

    def declare(self, retention: Retention) -> None:
        """Keep a policy in the lake; it holds for every upkeep from now on."""
        set_properties(self._disk, read_table(self._lake / LOG_TABLE), retention.properties)

    def run(self, *, retention: Retention | None = None, dry_run: bool = False) -> LakeUpkeepReport:
        """Remove what the policy (default: the declared one) does not keep, compact, checkpoint and vacuum.

        With `dry_run` nothing is written. Raises LakeError where another upkeep removes, or the disk refuses.
        """
        removal = self.remove(retention, dry_run=dry_run)
        done = None if dry_run else self._upkeep.run()
        return LakeUpkeepReport(removal=removal, round=done, vacuum=self._upkeep.vacuum(dry_run=dry_run))

    def remove_if_due(self) -> None:
        """Remove as `remove` does, once an hour, and log it: for services. Another upkeep that removes is enough."""
        now_ns = self._clock.nanoseconds()
        if now_ns < self._due_ns:
            return
        self._due_ns = now_ns + _ROUND_NS
        done = self.remove()
        trimmed = done.trim is not None and done.trim.files > 0
        if trimmed or done.snapshots or done.states or any(done.tables.values()):
            _log.info("upkeep_removed", lake=str(self._lake), **removal_form(done))
        for why in done.held_back:
            _log.info("upkeep_held_back", lake=str(self._lake), reason=why)

    def remove(self, retention: Retention | None = None, *, dry_run: bool = False) -> Removal:
        """Trim the log, then its tables, then delete snapshots; everything within the window is answered as before."""
        retention = retention or self.retention
        if retention is None:
            return Removal(retention=None, states=self._delete_states(dry_run=dry_run))
        with nullcontext() if dry_run else hold_upkeep(self._lake):
            removal = self._remove(retention, dry_run=dry_run)
            return attrs.evolve(removal, states=self._delete_states(dry_run=dry_run))

    def _remove(self, retention: Retention, *, dry_run: bool) -> Removal:
        held_back: list[str] = []
        log = MetadataLog.open(self._lake, disk=self._disk)
        table = SnapshotTable.open(self._lake / SNAPSHOTS_TABLE, self._disk)
        if table is None or log.end_offset <= log.start_offset:
            return Removal(retention=retention)
        now_ms = min(self._clock.milliseconds(), newest_ms(log, among=_ROWS))
        trim = self._trim(retention, log, table, now_ms, held_back, dry_run=dry_run)
        start = log.start_offset if trim is None else trim.new_start
        tables = self._trim_tables(start, held_back, dry_run=dry_run) if retention.keep_ms is not None else {}
        snapshots = self._delete_snapshots(retention, start, now_ms, held_back, dry_run=dry_run)
        return Removal(retention=retention, trim=trim, tables=tables, snapshots=snapshots, held_back=tuple(held_back))

    def _delete_states(self, *, dry_run: bool) -> tuple[str, ...]:
        log, age_ms = read_table(self._lake / LOG_TABLE), self._policy.orphan_age_ms
        return delete_stale_states(self._lake, log, self._disk, age_ms=age_ms, dry_run=dry_run)

    def _trim(
        self, retention: Retention, log: MetadataLog, table: SnapshotTable, now_ms: int, held_back: list[str], *,
        dry_run: bool,
    ) -> Trim | None:  # fmt: skip
        """Trim to the newest base that is sound, and from which all tables can go on; None where there is none."""
        state = read_table(self._lake / LOG_TABLE)
        snapshots = table.snapshots()
        for base in retention.bases(snapshots, _known_times(state.files.values()), now_ms=now_ms):
            if base.end_offset <= log.start_offset:
                return None
            if base.damage() is not None:
                held_back.append(f"The snapshot {base.name} is damaged: the log is not trimmed up to it.")
                continue
            try:
                return self._upkeep.trim(base.end_offset, dry_run=dry_run)
            except TooEarlyError as fault:  # an older base may do
                held_back[:] = held_back or [sentence_of(fault)]
        return None

    def _trim_tables(self, start: int, held_back: list[str], *, dry_run: bool) -> dict[str, int | None]:
        behind = [name for name, first in first_offsets(self._lake).items() if first < start]
        if dry_run or not behind:
            return dict.fromkeys(behind)
        done: dict[str, int | None] = {}
        for name in behind:
            try:
                done |= trim_tables(self._lake, start, (name,))
            except (TooEarlyError, OffsetError) as fault:
                held_back.append(sentence_of(fault))
        return done

    def _delete_snapshots(
        self, retention: Retention, start: int, now_ms: int, held_back: list[str], *, dry_run: bool
    ) -> tuple[LakeSnapshot, ...]:
        table = SnapshotTable.open(self._lake / SNAPSHOTS_TABLE, self._disk)
        if table is None:
            return ()
        snapshots = table.snapshots()
        chosen = retention.dispensable(snapshots, needed=_needed(snapshots, start), now_ms=now_ms)
        ends = {one.end_offset for one in chosen}
        own = table.with_own_files(ends)
        if len(own) < len(chosen):
            rest = len(chosen) - len(own)
            held_back.append(f"{rest} snapshots share a file with others: they stay.")
        if dry_run:
            return tuple(own)
        deleted = delete_snapshots(table, self._disk, ends)
        if deleted:
            gone = {one.end_offset for one in deleted}
            prune_cache(self._lake, [one for one in snapshots if one.end_offset not in gone])
        return tuple(deleted)


def removal_form(removal: Removal) -> dict[str, Any]:
    """What was removed, as JSON."""
    trim = removal.trim
    return {
        "trimmed": None if trim is None else {"fromOffset": trim.old_start, "startOffset": trim.new_start},
        "tables": removal.tables,
        "snapshots": [one.name for one in removal.snapshots],
        "states": [*removal.states],
    }


def _needed(snapshots: tuple[LakeSnapshot, ...], start: int) -> set[int]:
    """The end offsets of the snapshots with which the images of a log that starts at an offset begin.

    Those are all up to the first sound one; a log that begins at 0 needs none.
    """
    needed = set[int]()
    for one in snapshots if start > 1 else ():
        if one.end_offset >= start:
            needed.add(one.end_offset)
            if one.damage() is None:
                break
    return needed


def _known_times(files: Iterable[AddFile]) -> list[TimedOffset]:
    """The first and last records of a log's files, by statistics that have offsets and times."""
    found = []
    for file in files:
        span, statistics = offset_span(file), file.statistics
        if statistics is None or span.high is None:
            continue
        for offset, values in ((span.low, statistics.min_values), (span.high, statistics.max_values)):
            time_ms = epoch_milliseconds(values.get("timestamp"))
            if time_ms is not None:
                found.append(TimedOffset(offset, time_ms))
    return found
