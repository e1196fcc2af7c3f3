"""The position of a replay in a log: the order of batches, the open transaction, the quorum, skipped records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import BeginTransactionRecord
from kraftlake.records.schema import Message
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.loader.record_faults import UNREADABLE, type_of
from kraftlake.replay.log.open_transaction import OpenTransaction, T
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, ReplayError


class LogPosition(Generic[T]):
    """The position of a replay in its log: what it knows of the log apart from the metadata.

    `last_offset` is the last offset that was taken, -1 for none, `epoch` and `time` are those of its batch.
    `transaction` holds the items (T) of the records of a metadata transaction that is open there; `quorum` is the state
    of the quorum by the control records so far.

    Strict: a fault is raised. Lenient: what can't be replayed or read is left out and listed in `skipped`.
    """

    def __init__(self, at: MetadataProvenance = MetadataProvenance.EMPTY, *, lenient: bool = False) -> None:
        """Begin behind an offset."""
        self.lenient = lenient
        self.skipped: list[SkippedRecord] = []
        self.quorum = QuorumState()
        self.transaction = OpenTransaction[T]()
        self.cluster_id = at.cluster_id
        self.move_behind(at)

    @property
    def transaction_begin_offset(self) -> int | None:
        """The offset of the BeginTransactionRecord of the metadata transaction that is open, None without one."""
        return self.transaction.begin_offset

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open at `last_offset`."""
        return self.transaction.begin_offset is not None

    @property
    def last(self) -> MetadataProvenance:
        """The provenance of an image at `last_offset`."""
        return MetadataProvenance(
            offset=self.last_offset,
            epoch=self.epoch,
            timestamp=self.time,
            batch_aligned=self._batch_aligned,
            cluster_id=self.cluster_id,
        )

    def move_behind(self, at: MetadataProvenance) -> None:
        """Move to the offset of an image."""
        self.last_offset, self.epoch, self.time = at.offset, at.epoch, at.timestamp
        self._batch_aligned = at.batch_aligned

    def take_control(self, batch: RecordBatch, first: int, last: int) -> None:
        """Take the records of a control batch at the offsets [first, last]."""
        try:
            self.quorum = self.quorum.after(batch, first, last)
        except CorruptDataError as error:
            self.leave_out(first, "CONTROL", error)

    def ends_before(self, mark: Message, *, has_records: bool) -> bool:
        """Whether a metadata delta ends in front of the next record, a mark; `has_records`: the delta has some.

        A delta ends in front of a record that begins a transaction, and with a batch (of several that are loaded at
        once, the last one) unless a transaction is open.
        """
        return has_records and not self.in_transaction and isinstance(mark, BeginTransactionRecord)

    def take_mark(self, mark: Message, offset: int) -> list[T]:
        """Begin or end a transaction; the items that take effect, none where the mark contradicts those before it."""
        try:
            return self.transaction.mark(mark.API_KEY, offset)
        except ReplayError as error:
            self.leave_out(offset, type_of(mark), error)
            return []

    def leave_out(self, offset: int, type_: str, error: KraftlakeError) -> None:
        """Raise the fault of a record of this type; if lenient, list it in `skipped`."""
        if not self.lenient:
            raise error
        self.skipped.append(SkippedRecord(offset=offset, type=type_, reason=str(error)))

    @property
    def lost(self) -> Callable[[int, int, str], None] | None:
        """Called with first offset, last offset and the reason of offsets that can't be read; None if strict."""
        return self._pass_lost if self.lenient else None

    def _pass_lost(self, first: int, last: int, reason: str) -> None:
        """Skip offsets that can't be read. A transaction may have ended there, so an open one is dropped."""
        self.skipped.append(SkippedRecord(offset=first, type=UNREADABLE, reason=reason))
        self.transaction = OpenTransaction()
        self.last_offset = max(self.last_offset, last)


def order_fault(base_offset: int, epoch: int, *, last: int, last_epoch: int) -> ReplayError | None:
    """The fault of a batch with these numbers behind the offset `last`, whose epoch is `last_epoch`; or None.

    What a log may lack at offset 0 is no part of any image: see `has_beginning`.
    """
    if base_offset > last + 1 and (last, base_offset) != (-1, 1):
        return ReplayError(f"Offset {last + 1} is missing: the batch after offset {last} starts at {base_offset}.")
    if epoch < last_epoch:
        return ReplayError(
            f"The batch at offset {base_offset} has epoch {epoch}, but offset {last} before it has epoch {last_epoch}."
        )
    return None
