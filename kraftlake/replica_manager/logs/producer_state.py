"""The last batches of a log's producers, which reveal repeated batches and gaps in the sequence (KIP-98).

Pure: the log passes the batches in order, and earlier ones on request. Transactions are not verified with their
coordinator (KIP-890), and markers are checked as in transaction.version 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kraftlake.replica_manager.logs.log_batch import NO_PRODUCER_ID, LogBatch
from kraftlake.replica_manager.logs.log_values import AppendOrigin
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

BATCHES_TO_RETAIN: Final = 5
"""The number of requests that an idempotent producer may have in flight."""
NO_EPOCH: Final = -1
_LAST_SEQUENCE: Final = (1 << 31) - 1

EarlierBatches = Callable[[int, int], Iterable[LogBatch]]
"""The batches of a producer in the log before an offset, the last one first."""


@attrs.frozen(weakref_slot=False)
class BatchMetadata:
    """The sequence numbers and offsets of a producer's batch, both inclusive; `timestamp` in epoch ms."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int

    @classmethod
    def of(cls, batch: LogBatch) -> BatchMetadata:
        """Return the metadata of a batch in the log."""
        return cls(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp)


@attrs.frozen(kw_only=True, weakref_slot=False)
class ProducerState:
    """A producer: its epoch, its last batches in that epoch, and the first offset of its open transaction.

    `last_timestamp` is the timestamp of the last batch, from which the expiration counts; `coordinator_epoch` is the
    epoch of the last marker. Source: org.apache.kafka.storage.internals.log.ProducerStateEntry.
    """

    producer_id: int
    producer_epoch: int = NO_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_first_offset: int | None = None
    batches: tuple[BatchMetadata, ...] = ()

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, −1 without a record in this epoch."""
        return self.batches[-1].last_sequence if self.batches else -1

    def duplicate_of(self, batch: LogBatch) -> BatchMetadata | None:
        """The known batch that `batch` repeats."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        wanted = (batch.base_sequence, batch.last_sequence)
        return next((known for known in self.batches if (known.first_sequence, known.last_sequence) == wanted), None)

    def is_before_known(self, batch: LogBatch) -> bool:
        """Whether `batch` may be one of the last `BATCHES_TO_RETAIN`, appended before the known ones."""
        if batch.producer_epoch != self.producer_epoch or not 0 < len(self.batches) < BATCHES_TO_RETAIN:
            return False
        back = (self.batches[0].first_sequence - batch.base_sequence) & _LAST_SEQUENCE
        return 0 < back <= _LAST_SEQUENCE // 2 and batch.base_sequence >= 0

    def preceded_by(self, earlier: Iterable[LogBatch]) -> ProducerState:
        """Return the state extended by earlier batches of its epoch, last one first, up to `BATCHES_TO_RETAIN`."""
        batches = list(self.batches)
        for batch in earlier:
            if batch.control and batch.count == 0:
                continue
            if batch.producer_epoch != self.producer_epoch:
                break
            if not batch.control:
                batches.insert(0, BatchMetadata.of(batch))
            if len(batches) == BATCHES_TO_RETAIN:
                break
        return attrs.evolve(self, batches=tuple(batches))


class ProducerAppend:
    """The state of a producer after the batches of one append, computed before they are appended.

    The sequence numbers of clients' batches are checked; those of replicated batches are only recorded. Source:
    org.apache.kafka.storage.internals.log.ProducerAppendInfo.
    """

    def __init__(self, topic_partition: TopicPartition, before: ProducerState, origin: AppendOrigin) -> None:
        self._topic_partition = topic_partition
        self._is_new = before.producer_epoch == NO_EPOCH
        self._origin = origin
        self._producer_id = before.producer_id
        self._epoch = before.producer_epoch
        self._coordinator_epoch = before.coordinator_epoch
        self._last_timestamp = before.last_timestamp
        self._transaction_first_offset = before.transaction_first_offset
        self._batches = list(before.batches)

    @property
    def state(self) -> ProducerState:
        """The state after the batches."""
        return ProducerState(
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            coordinator_epoch=self._coordinator_epoch,
            last_timestamp=self._last_timestamp,
            transaction_first_offset=self._transaction_first_offset,
            batches=tuple(self._batches[-BATCHES_TO_RETAIN:]),
        )

    def append(self, batch: LogBatch) -> None:
        """Advance the state by the next batch.

        Raises InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTxnStateError or
        TransactionCoordinatorFencedError for a batch that does not continue the state.
        """
        if batch.control and batch.count == 0:
            return  # a compacting leader has removed the marker
        self._check_epoch(batch)
        if batch.control:
            self._end_transaction(batch)
            return
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(batch)
        if self._transaction_first_offset is not None and not batch.transactional:
            raise InvalidTxnStateError(
                f"{self._where(batch)} is outside of its transaction, which began at offset "
                f"{self._transaction_first_offset}."
            )
        if batch.transactional and self._transaction_first_offset is None:
            self._transaction_first_offset = batch.base_offset
        self._take(batch)
        self._batches.append(BatchMetadata.of(batch))

    def _take(self, batch: LogBatch) -> None:
        if batch.producer_epoch != self._epoch:
            self._epoch = batch.producer_epoch
            self._batches.clear()
        self._last_timestamp = batch.max_timestamp

    def _check_epoch(self, batch: LogBatch) -> None:
        if batch.producer_epoch >= self._epoch:
            return
        words = f"{self._where(batch)} has producer epoch {batch.producer_epoch}, but {self._epoch} was seen."
        if self._origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpochError(words)
        _log.warning("producer_epoch_fell", why=words)

    def _check_sequence(self, batch: LogBatch) -> None:
        first = batch.base_sequence
        if batch.producer_epoch != self._epoch:
            wrong, wanted = first != 0 and self._epoch != NO_EPOCH, 0
        else:
            last = self._batches[-1].last_sequence if self._batches else -1
            wanted = 0 if last == _LAST_SEQUENCE else last + 1
            wrong = first != wanted and not self._is_new
        if wrong:
            raise OutOfOrderSequenceError(f"{self._where(batch)} has sequence number {first}, and {wanted} was due.")

    def _end_transaction(self, marker: LogBatch) -> None:
        coordinator_epoch = marker.coordinator_epoch()
        if self._coordinator_epoch > coordinator_epoch:
            words = (
                f"{self._where(marker)} is of coordinator epoch {coordinator_epoch}, but {self._coordinator_epoch} was "
                f"seen."
            )
            if self._origin is not AppendOrigin.REPLICATION:
                raise TransactionCoordinatorFencedError(words)
            _log.info("coordinator_epoch_fell", why=words)
        self._coordinator_epoch = coordinator_epoch
        self._transaction_first_offset = None
        self._take(marker)

    def _where(self, batch: LogBatch) -> str:
        return f"A batch of producer {batch.producer_id} for offset {batch.base_offset} of {self._topic_partition}"


class ProducerStates:
    """The producers of a log, by id.

    A snapshot has only the last batch of each producer, and a reloaded log has few batches before it. If a client's
    batch may be an earlier one, `earlier` is called for these, once per producer. Kafka, which lacks them, answers
    OUT_OF_ORDER_SEQUENCE_NUMBER, and Java's clients write the records again in a new epoch. Source:
    org.apache.kafka.storage.internals.log.ProducerStateManager.
    """

    __slots__ = ("_earlier", "_states", "_topic_partition", "_unsearched")

    def __init__(self, topic_partition: TopicPartition, earlier: EarlierBatches = lambda *_: ()) -> None:
        self._topic_partition = topic_partition
        self._earlier = earlier
        self._states: dict[int, ProducerState] = {}
        self._unsearched: set[int] = set()
        """The producers whose batches before the known ones were not yet searched in the log."""

    def __len__(self) -> int:
        """The number of known producers."""
        return len(self._states)

    def get(self, producer_id: int) -> ProducerState | None:
        """The state of a producer, None for an unknown one."""
        return self._states.get(producer_id)

    def check(
        self, batches: Sequence[LogBatch], origin: AppendOrigin
    ) -> tuple[list[ProducerState], BatchMetadata | None]:
        """Return the states of the producers after `batches`, for `update`; or the known batch that a client repeats.

        A client's append with a repeated batch is not appended at all, as in Kafka. Raises the errors of
        `ProducerAppend.append`.
        """
        appends: dict[int, ProducerAppend] = {}
        for batch in batches:
            id_ = batch.producer_id
            if id_ == NO_PRODUCER_ID:
                continue
            known = self._states.get(id_)
            if origin is AppendOrigin.CLIENT and known is not None:
                if id_ in self._unsearched and known.is_before_known(batch):
                    known = self._with_earlier(known)
                duplicate = known.duplicate_of(batch)
                if duplicate is not None:
                    return [], duplicate
            append = appends.get(id_)
            if append is None:
                before = ProducerState(producer_id=id_) if known is None else known
                append = appends[id_] = ProducerAppend(self._topic_partition, before, origin)
            append.append(batch)
        return [append.state for append in appends.values()], None

    def _with_earlier(self, known: ProducerState) -> ProducerState:
        id_ = known.producer_id
        self._states[id_] = known.preceded_by(self._earlier(id_, known.batches[0].first_offset))
        self._unsearched.discard(id_)
        return self._states[id_]

    def update(self, states: Iterable[ProducerState]) -> None:
        """Store the states returned by `check`, after the batches are appended."""
        for state in states:
            self._states[state.producer_id] = state

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers without an open transaction and without writes for `expiration_ms`."""
        for id_, state in list(self._states.items()):
            if state.transaction_first_offset is None and now_ms - state.last_timestamp >= expiration_ms:
                del self._states[id_]
                self._unsearched.discard(id_)

    def load(self, states: Iterable[ProducerState]) -> None:
        """Replace all states."""
        self._states = {state.producer_id: state for state in states}
        self._unsearched = set(self._states)

    def states(self) -> Collection[ProducerState]:
        """All states."""
        return self._states.values()

    def replay(self, batches: Iterable[LogBatch]) -> None:
        """Advance the states by batches from the log."""
        for batch in batches:
            states, _ = self.check([batch], AppendOrigin.REPLICATION)
            self.update(states)
            self._unsearched.update(state.producer_id for state in states)
