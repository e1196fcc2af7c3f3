"""The position of a replay in a log: the order of batches, the open transaction, the quorum, skipped records.

Records within a metadata transaction take effect at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import (
    METADATA_RECORDS,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kraftlake.records.schema import Message
from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.loader.quorum_state import QuorumChange, QuorumState
from kraftlake.replay.loader.record_faults import UNREADABLE, type_of
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, ReplayError

T = TypeVar("T")

TRANSACTION_MARKS: Final = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
"""The types of the records that begin or end a transaction."""
_API_KEYS: Final = tuple(mark.API_KEY for mark in TRANSACTION_MARKS)


class OpenTransaction(Generic[T]):
    """The open metadata transaction (KIP-868) at an offset of a log, if any.

    Items within the transaction are held until its EndTransactionRecord releases them or its AbortTransactionRecord
    drops them. Source: org.apache.kafka.image.loader.MetadataBatchLoader.
    """

    def __init__(self) -> None:
        self.begin_offset: int | None = None
        """The offset of its BeginTransactionRecord; None where no transaction is open."""
        self.aborted: tuple[int, int] | None = None
        """The first and last offset of the newest aborted transaction."""
        self._held: list[T] = []

    def take(self, message: AnyMessage, offset: int, item: T) -> list[T]:
        """Process the next record, at an offset, and its item; returns the items that take effect there, in order.

        Raises as `mark`.
        """
        if isinstance(message, TRANSACTION_MARKS):
            return self.mark(message.API_KEY, offset)
        if self.begin_offset is None:
            return [item]
        self.hold(item)
        return []

    def hold(self, part: T) -> None:
        """Hold one more item."""
        assert self.begin_offset is not None, "items are held within a transaction only"
        self._held.append(part)

    def held(self) -> Sequence[T]:
        """The items of the open transaction, in order."""
        return self._held

    def mark(self, api_key: int, offset: int) -> list[T]:
        """Process a begin, end or abort record at an offset; returns the items that take effect there, in order.

        Raises ReplayError with the offset for a record that contradicts those before it; it then changes nothing.
        """
        assert api_key in _API_KEYS, "it is a mark"
        begins, begin = api_key == BeginTransactionRecord.API_KEY, self.begin_offset
        fault = ""
        if begins and begin is not None:
            fault = f", BEGIN_TRANSACTION_RECORD: the transaction that began at offset {begin} is still open."
        elif not begins and begin is None:
            fault = f": {METADATA_RECORDS[api_key].__name__} without a BeginTransactionRecord before it."
        if fault:
            raise ReplayError(f"Offset {offset}{fault}", offset=offset)
        if begins or begin is None:
            self.begin_offset = offset
            return []
        held, self._held, self.begin_offset = self._held, [], None
        if api_key == EndTransactionRecord.API_KEY:
            return held
        self.aborted = begin, offset
        return []


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

    def take_control(self, batch: RecordBatch, first: int, last: int) -> list[QuorumChange]:
        """Take the records of a control batch at the offsets [first, last]; returns the changes of the quorum."""
        changes = list[QuorumChange]()
        try:
            changes += self.quorum.changes(batch, first, last)
        except CorruptDataError as error:
            self.leave_out(first, "CONTROL", error)
        self.quorum = changes[-1].state if changes else self.quorum
        return changes

    def ends_before(self, mark: Message, *, has_records: bool) -> bool:
        """Whether a metadata delta ends in front of the next record, a mark; `has_records`: the delta has some.

        A delta ends in front of a record that begins a transaction, and with a batch (of several that are loaded at
        once, the last one) unless a transaction is open.
        """
        return has_records and not self.in_transaction and isinstance(mark, BeginTransactionRecord)

    def take_record(self, message: AnyMessage, offset: int, item: T) -> list[T]:
        """Process the next record and its item; the items that take effect there, none with a mark that contradicts."""
        try:
            return self.transaction.take(message, offset, item)
        except ReplayError as error:
            self.leave_out(offset, type_of(message), error)
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
