"""The metadata log as a Delta table: appended in whole batches without gaps, read by offset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlake.metadata_log.append.creation import Contents, check_store, create_lake, was_begun
from kraftlake.metadata_log.append.log_commit import (
    LogWentOnError,
    append_file,
    check_claimed,
    check_newest_link,
    commit_outcome,
    file_that_follows,
)
from kraftlake.metadata_log.append.log_file import LogEnd, RowsFile
from kraftlake.metadata_log.delta_table.actions import transaction
from kraftlake.metadata_log.delta_table.commit import UnknownOutcomeError, now_ms
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, check_none_lost, read_table
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log_facts import COMMITTED_TO, LOG_TABLE, ROLE, ROLES, SNAPSHOTS_TABLE, START_OFFSET
from kraftlake.metadata_log.reading.readable_log import ReadableLog
from kraftlake.metadata_log.reading.tail import LogTail, tail_async
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot, SnapshotTable
from kraftlake.metadata_log.storage.disk import Disk, Durability, disk_for
from kraftlake.metadata_log.storage.location import Location, lake_location, refused_read
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage, LeaderChangeVoter
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.arguments import whole
from kraftlake.runtime.errors import CorruptDataError, EndOffsetError, LakeError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_CLAIM_RETRIES = 100


class MetadataLog(ReadableLog):
    """A lake's log, for reading and appending.

    One handle is for one thread; any number of processes may append, and each offset is assigned once.
    """

    def __init__(self, path: Location, state: TableState, disk: Disk) -> None:
        super().__init__(path, state)
        self._disk = disk
        self._stale = False
        self._checked_to_write = -1

    @classmethod
    def create(
        cls,
        path: str | Location,
        cluster_id: str | None = None,
        role: str = "imported",
        *,
        start_offset: int = 0,
        contents: Contents | None = None,
        disk: Disk | None = None,
        durability: Durability = "fsync",
    ) -> MetadataLog:
        """Create a lake in an empty or missing folder whose parent exists: empty, or with all of `contents`.

        `start_offset` above 0 is for a log whose beginning is covered by a snapshot, which the caller provides. Raises
        LakeError if a lake or anything else already exists, or if the folder can't be made; no lake exists then.
        """
        path = lake_location(path)
        disk = disk or disk_for(path, durability)
        state = create_lake(
            path, disk, role=role, cluster_id=cluster_id, start_offset=whole(start_offset, least=0), contents=contents
        )
        return cls(path, state, disk)

    @classmethod
    def open(
        cls,
        path: str | Location,
        *,
        disk: Disk | None = None,
        durability: Durability = "fsync",
        maker: str = "kraftlake import SOURCE LAKE",
    ) -> MetadataLog:
        """Open the lake at `path`, a folder or a URI.

        Raises LakeError with the actual content of the path, and `maker`, the command that creates a lake;
        CorruptDataError for a torn lake.
        """
        path = lake_location(path)
        try:
            state = read_table(path / LOG_TABLE)
        except NotADeltaTableError as fault:
            raise LakeError(_instead_of_lake(path, maker)) from fault
        configuration = state.metadata.configuration
        if state.metadata.partition_columns or not holds_columns(
            state.metadata.schema_string, LOG_SCHEMA, str(path / LOG_TABLE)
        ):
            raise LakeError(f"{path / LOG_TABLE} is a Delta table of another schema, not a metadata log.")
        if not configuration.get(START_OFFSET, "").isdecimal() or configuration.get(ROLE) not in ROLES:
            raise LakeError(f"{path / LOG_TABLE} was not made by kraftlake: its properties lack role or start offset.")
        return cls(path, state, disk or disk_for(path, durability))

    def another_handle(self) -> MetadataLog:
        """Return a handle at the same version for another thread, without access to the lake."""
        return MetadataLog(self._path, self._state.copy(), self._disk)

    def refresh(self) -> int:
        """The same as `ReadableLog.refresh`."""
        taken = super().refresh()
        self._stale = False
        return taken

    def append(
        self,
        rows: pa.Table | Iterable[RecordBatch],
        committed_to: int | None = None,
        *,
        epoch: int | None = None,
        expected_end_offset: int | None = None,
    ) -> int:
        """Append whole batches as one Parquet file in one commit: all of them or none, durable on return.

        Returns the version of the table `log` that has them.

        They begin at `end_offset`. A controlled lake's writer passes its `epoch`, from `claim`, and the expected end of
        the log (by default the start of the batches). In an imported lake `committed_to` is stored if it is above the
        log's value, at most `end_offset` after this append; without rows only `committed_to` is committed, and nothing
        if it is not higher.

        Raises FencedEpochError if a later epoch was claimed, now and on every later try; EndOffsetError if the log of
        this epoch ends elsewhere; ImportConflictError with the offset of a gap, an overlap or a decreasing epoch;
        LakeError for batches that aren't whole, if another writer appended meanwhile, or if the disk refuses. Nothing
        is in the log then. UnknownOutcomeError (a LakeError) if the outcome can't be decided, see `outcome`.
        """
        if self._stale:
            self.refresh()
        self._check_role("imported" if epoch is None else "controlled")
        self._check_to_write()
        if not isinstance(rows, pa.Table):
            rows = list(rows)
        if epoch is not None:
            if expected_end_offset is None:
                expected_end_offset = _first_offset(rows) if rows else LogEnd.of(self._state).end_offset
            self._check_claimed(epoch, expected_end_offset)
            self._check_to_write()
        end = LogEnd.of(self._state)
        file = file_that_follows(end, rows, claimed_epoch=epoch)
        end_offset = end.end_offset if file is None else file.end.end_offset
        actions = []
        if committed_to is not None and (committed_to := min(committed_to, end_offset)) > self.committed_to:
            actions.append(transaction(COMMITTED_TO, committed_to, now_ms()))
        if file is not None or actions:
            self._commit(end, file, actions, epoch=epoch)
        assert LogEnd.of(self._state).end_offset == end_offset
        return self._state.version

    def claim(self, node_id: int, *, timestamp: int | None = None, expected_end_offset: int | None = None) -> int:
        """Become the log's writer: commit the LeaderChange batch of the next epoch, and return that epoch.

        Every append of an earlier epoch is refused from then on. Concurrent claims each get their own epoch; the last
        one can append. `timestamp` (epoch ms) is the batch's, by default now.

        Raises EndOffsetError, without a claim, if the log ends after `expected_end_offset`: a writer that claims
        because the log was silent treats another writer's appends and claims as activity. Raises LakeError for an
        imported lake or if the disk refuses, UnknownOutcomeError if the outcome can't be decided (then claim again: an
        unused epoch does no harm).
        """
        node_id = whole(node_id, "a node's id", least=0)
        self._check_role("controlled")
        for _ in range(_CLAIM_RETRIES):
            self.refresh()
            self._check_to_write()
            end = LogEnd.of(self._state)
            if expected_end_offset not in (None, end.end_offset):
                raise EndOffsetError(expected_end_offset, end.end_offset)
            epoch = max(end.epoch, 0) + 1
            time = now_ms() if timestamp is None else timestamp
            try:
                self._commit(end, file_that_follows(end, [leader_change(node_id, end.end_offset, epoch, time)]))
            except LogWentOnError:
                continue
            return epoch
        raise LakeError(f"{self._path} was written to by others {_CLAIM_RETRIES} times in a row; try again.")

    def outcome(self, fault: UnknownOutcomeError) -> bool | None:
        """Whether the commit of an append that ended in `fault` is in the log.

        None while no other commit has its version: in an object store the write may still take effect. Raises LakeError
        if that version can't be read, or was cleaned up meanwhile.
        """
        return commit_outcome(self._state.path, fault)

    def tail(self, from_offset: int | None = None, *, timeout: float | None = None, poll: float = 0.001) -> LogTail:
        """Yield the whole batches from the one that holds `from_offset` on, then each new one after its commit.

        None starts at the end. Polls for the next version each `poll` seconds; ends after `timeout` seconds without a
        batch (None: never; 0: at the end of the log), or by `close`. The iterator has its own handle, for one thread.
        Raises OffsetError with the first available offset if the log was trimmed past it; compaction, clean-up and
        vacuum have no visible effect.
        """
        return LogTail(MetadataLog.open(self._path), from_offset, timeout=timeout, poll=poll)

    def tail_async(
        self, from_offset: int | None = None, *, timeout: float | None = None, poll: float = 0.001
    ) -> AsyncIterator[RecordBatch]:
        """The same as `tail` for an event loop; `aclose()` or leaving the loop ends it."""
        return tail_async(MetadataLog.open(self._path), from_offset, timeout=timeout, poll=poll)

    @property
    def disk(self) -> Disk:
        """The disk or object store for the lake's writes."""
        return self._disk

    def snapshots(self) -> tuple[LakeSnapshot, ...]:
        """The snapshots of the lake, by end offset; an incomplete one is skipped with a warning."""
        table = SnapshotTable.open(self._path / SNAPSHOTS_TABLE, self._disk)
        return () if table is None else table.snapshots()

    def damaged_snapshots(self) -> tuple[tuple[str, str], ...]:
        """The names of the snapshots that `snapshots` skips, each with the reason in words."""
        table = SnapshotTable.open(self._path / SNAPSHOTS_TABLE, self._disk)
        return () if table is None else table.damaged()

    def add_snapshot(self, snapshot: SnapshotFacts, batches: Iterable[RecordBatch | BatchValues]) -> bool:
        """Add a snapshot with all of its batches, control batches too, in one commit of the table `snapshots`.

        Returns False if the lake already has the same snapshot. Raises ImportConflictError if it has another one with
        this end offset, LakeError if the disk refuses.
        """
        rows = to_rows(batches)
        return SnapshotTable.open_or_create(self._path / SNAPSHOTS_TABLE, self._disk).add(rows, snapshot)

    def _check_role(self, role: str) -> None:
        if self._state.metadata.configuration[ROLE] == role:
            return
        if role == "controlled":
            raise LakeError(
                f"{self._path} is an imported lake, which only imports append to: one record of another writer would "
                f"spoil every later import. `kraftlake fork` makes a controlled copy."
            )
        raise LakeError(f"{self._path} is a controlled lake: an append states the epoch that its writer claimed.")

    def _check_to_write(self) -> None:
        """Check that no other writer's rows exist, and check the table before the first write of this handle.

        The first check covers that no version was lost, that the newest rows are the appended ones, and that commits
        can't overwrite each other. Raises LakeError, CorruptDataError. Rows are checked again after commits of others;
        an append lists nothing.
        """
        if self._checked_to_write == self._state.version:
            return
        if self._checked_to_write < 0:
            check_none_lost(self._state.path, self._state.version)
            check_newest_link(self._state)
            if isinstance(self._path, ObjectPath):  # the link of a disk's commit says so itself
                check_store(self._path, self._disk)
        if (fault := self.misplaced_rows()) is not None:  # what is appended to such a log could not be read
            raise CorruptDataError(f"{fault} Nothing is appended to it: `kraftlake verify` tells more.")
        self._checked_to_write = self._state.version

    def _check_claimed(self, epoch: int, expected_end_offset: int) -> None:
        """Check the claim; on a mismatch, refresh first: another handle may have claimed, or appended."""
        end = LogEnd.of(self._state)
        if (end.epoch, end.end_offset) != (epoch, expected_end_offset):
            self.refresh()
            end = LogEnd.of(self._state)
        check_claimed(self._path, end, epoch, expected_end_offset)

    def _commit(
        self, end: LogEnd, file: RowsFile | None, actions: Sequence[Mapping[str, Any]] = (), *, epoch: int | None = None
    ) -> None:
        """Commit rows that continue the log after `end`, and other actions; `epoch` is that of a claimed append."""
        self._stale = True
        before = self._state
        try:
            state = append_file(self._disk, before, file, actions)
        except LogWentOnError:
            self.refresh()
            if epoch is not None:
                check_claimed(self._path, LogEnd.of(self._state), epoch, end.end_offset)
            raise
        self._stale = False
        if state is before:
            self._checked_to_write = before.version
        else:
            self._hold(state)


def leader_change(node_id: int, offset: int, epoch: int, timestamp: int) -> RecordBatch:
    """Return the control batch at the start of an epoch: the node leads, and is its own only voter.

    Of version 0, the only one that Kafka 4.4 reads.
    """
    voter = LeaderChangeVoter(voter_id=node_id)
    message = LeaderChangeMessage(version=0, leader_id=node_id, voters=(voter,), granting_voters=(voter,))
    return RecordBatch.control_of(offset, epoch, timestamp, [message])


def _first_offset(rows: pa.Table | list[RecordBatch]) -> int:
    first: int = rows.column("offset")[0].as_py() if isinstance(rows, pa.Table) else rows[0].base_offset
    return first


def _instead_of_lake(path: Location, maker: str) -> str:
    """Why there is no lake at a place, and the command that makes one. Raises RefusedReadError."""
    try:
        if not path.exists():
            return f"There is no lake at {path}; `{maker}` makes one."
        if was_begun(path):
            return (
                f"The lake at {path} was begun and never finished, so nothing is in it: make it again, by `{maker}` "
                "for instance."
            )
        found = "is no lake" if not path.is_dir() or any(path.iterdir()) else "is an empty folder"
    except OSError as fault:
        raise refused_read(path, fault) from fault
    return f"{path} {found}: `{maker}` makes a lake in an empty folder or a new one."
