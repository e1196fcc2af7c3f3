"""The writer of `events/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.delta_rows_writer import DeltaRowsWriter
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.events.entry_events import election_event
from kraftlake.tables.events.event_rows import merged, rows_of_singles
from kraftlake.tables.events.states import EVENT_KINDS, EventStates, Rows
from kraftlake.tables.events.table import ENCODED_EVENTS, EVENTS
from kraftlake.tables.lazy_table import LazyTable

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

_NO_OP = NoOpRecord.API_KEY


class EventsWriter(DeltaRowsWriter):
    """Makes the rows of `events/`: of each delta those of the quorum, topics and partitions, and all else.

    The load of a snapshot makes no events, for it does not say when anything happened.
    """

    description = EVENTS
    encodes = True
    kinds = EVENT_KINDS

    def __init__(self, *, bulk: bool | None = None, show_secrets: bool = False) -> None:
        """`bulk` says whether to use compiled code; None: where there are enough records.

        Sensitive configs are `(redacted)` unless `show_secrets`.
        """
        super().__init__()
        self._new_states = partial(EventStates, bulk=bulk, show_secrets=show_secrets)
        self._states = self._new_states()
        self._maker: ThreadPoolExecutor | None = None
        self._quorum = QuorumState()
        self._epoch = -1
        """The epoch of the last delta, or of no-op records behind it."""
        self._quiet_rises: frozenset[int] = frozenset()
        """The last offsets of batches of no-op records alone that begin an epoch: they make no event of a leader."""

    def drain_later(self) -> LazyTable:
        """The rows that were made since the last call, or are being made."""
        return self.rows.take_later()

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open behind what was taken."""
        return self._transactions.open_since is not None

    def start(self, image: MetadataImage, quorum: QuorumState, epoch: int) -> None:
        """Begin with an image outside of a transaction, in place of what a table covers."""
        self._go_on(image, told=True)
        self._know_leader(quorum.leader_id, epoch)

    def _go_on(self, image: MetadataImage, *, told: bool) -> None:  # noqa: ARG002 - of use to others
        self._states = self._new_states(image)

    def _know_leader(self, leader: int | None, epoch: int) -> None:
        self._quorum, self._epoch = QuorumState(leader_id=leader), epoch

    def _tell_load(self, image: MetadataImage, heads: DeltaBoundaries) -> None:
        pass

    def _asks_about(self, rows: pa.Table) -> bool:
        if super()._asks_about(rows) or (rows.column("epoch").to_numpy() != self._epoch).any():
            return True
        return bool(rows.column("control").to_numpy(zero_copy_only=False).any())

    def _asks_about_part(self, part: BatchValues | RecordBatch) -> bool:
        self._quiet_rises = frozenset()
        if isinstance(part, RecordBatch):
            if part.control:
                for record in part.messages():
                    self._quorum = self._quorum.after(record.message)
            elif part.epoch != self._epoch and all(value[1] == _NO_OP for value in part.values):
                self._quiet_rises = frozenset((part.last_offset,))
            return part.epoch != self._epoch
        rises = np.flatnonzero(np.diff(part.epochs, prepend=self._epoch))
        self._quiet_rises = frozenset(int(part.last_offsets[batch]) for batch in rises if _is_quiet(part, int(batch)))
        return len(rises) > 0

    def _tell(self, records: EffectiveRecords, heads: DeltaBoundaries) -> None:
        told = [*self._states.take(records, heads)]
        elected = self._elected(heads)
        elections = self._elections(elected, heads) if len(elected) else None
        self.rows.add_later(self._later(partial(_joined, told, elections, elected)))

    def _later(self, make: Callable[[], pa.Table]) -> LazyTable:
        """Rows that a background thread makes, where compiled code replays records."""
        if not self._states.in_columns:
            return LazyTable.of(make())
        if self._maker is None:
            self._maker = ThreadPoolExecutor(1, "kraftlake-events")
        return LazyTable(self._maker.submit(make).result)

    def _elected(self, heads: DeltaBoundaries) -> Any:
        """The numbers (int64) of the deltas that begin an epoch under a leader that is known."""
        rises = np.flatnonzero(np.diff(heads.epochs, prepend=self._epoch))
        if len(heads.epochs):
            self._epoch = int(heads.epochs[-1])
        if self._quorum.leader_id is None:
            return rises[:0]
        return rises[[int(heads.offsets[rise]) not in self._quiet_rises for rise in rises.tolist()]]

    def _elections(self, deltas: Any, heads: DeltaBoundaries) -> pa.Table:
        leader = self._quorum.leader_id
        assert leader is not None
        events = [election_event(leader, int(heads.epochs[delta])) for delta in deltas.tolist()]
        return rows_of_singles(events, deltas, heads)


def _joined(told: Sequence[Rows], elections: pa.Table | None, elected: Any) -> pa.Table:
    """All the rows of deltas; elections of controllers come first among those of theirs."""
    tables = [make() for make in told]
    rows = pa.concat_tables([ENCODED_EVENTS.empty_table(), *(table for table, _ in tables)])
    if elections is None:
        return rows
    return merged(elections, elected, rows, np.concatenate([np.empty(0, np.int64), *(deltas for _, deltas in tables)]))


def _is_quiet(part: BatchValues, batch: int) -> bool:
    first = int(part.last_offsets[batch - 1]) + 1 if batch else part.base_offset
    records = slice(first - part.base_offset, int(part.last_offsets[batch]) + 1 - part.base_offset)
    return bool((part.data[part.starts[records] + 1] == _NO_OP).all())
