"""A replica's log, independent of the storage of its batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import (
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
)
from kraftlake.replica_manager.logs.batch_run import BatchRun, find_batches
from kraftlake.replica_manager.logs.leader_epochs import LeaderEpochs
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import (
    AbortedTransaction,
    AppendOrigin,
    FetchDataInfo,
    FetchIsolation,
    LogAppendInfo,
    TimestampAndOffset,
)
from kraftlake.replica_manager.logs.open_transactions import EndedTransaction, Transactions
from kraftlake.replica_manager.logs.producer_state import ProducerStates


@attrs.define(eq=False, repr=False, weakref_slot=False)
class PartitionLog(ABC):
    """A replica's log, without the storage of its batches, which a subclass implements.

    Ends are exclusive; log_start_offset ≤ high_watermark ≤ log_end_offset always holds. Any method may raise
    KafkaStorageError when the log directory has failed. Not thread-safe: the partition's lock guards it.

    Source: org.apache.kafka.storage.internals.log.UnifiedLog.
    """

    topic_partition: TopicPartition
    topic_id: Uuid | None
    """As in partition.metadata; None for a log without one."""
    directory: str
    config: LogConfig
    log_start_offset: int = attrs.field(default=0, init=False)
    log_end_offset: int = attrs.field(default=0, init=False)
    high_watermark: int = attrs.field(default=0, init=False)
    """The end of the records known to be committed."""
    producers: ProducerStates = attrs.field(init=False)
    _epochs: LeaderEpochs = attrs.field(factory=LeaderEpochs, init=False)
    _transactions: Transactions = attrs.field(factory=Transactions, init=False)

    def __attrs_post_init__(self) -> None:
        self.producers = ProducerStates(self.topic_partition)

    @abstractmethod
    def _write(self, run: BatchRun) -> None:
        """Add batches at the end; the log end offset is still the old one."""

    @abstractmethod
    def _batches_from(self, offset: int) -> Iterator[LogBatch]:
        """Yield the batch that contains `offset`, or the first one after it, and all later ones."""

    @abstractmethod
    def _batches_with(self, timestamp: int) -> Iterator[LogBatch]:
        """Yield batches in order, among them the log's first one with a record at or after `timestamp`."""

    @abstractmethod
    def _latest_batch(self) -> LogBatch | None:
        """Return the first batch with the log's largest timestamp."""

    @abstractmethod
    def _cut(self, offset: int) -> None:
        """Remove the batches with records at or after `offset`, and rebuild producers and transactions."""

    @abstractmethod
    def _restart(self, offset: int) -> None:
        """Remove all batches; the next one begins at `offset` or later."""

    @abstractmethod
    def _drop_below(self, offset: int) -> None:
        """Remove batches with only records below `offset`, or mark them for removal."""

    @abstractmethod
    def _note_aborted(self, ended: EndedTransaction) -> None:
        """Note an aborted transaction, whose marker is in the last written batches."""

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of a transaction open below it; at least the log start offset."""
        return max(self.log_start_offset, self._transactions.last_stable_offset(self.high_watermark))

    @property
    def latest_epoch(self) -> int | None:
        """The last leader epoch whose start is known."""
        return self._epochs.latest

    @property
    def batches(self) -> tuple[LogBatch, ...]:
        """All batches."""
        return tuple(self._batches_from(self.log_start_offset))

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """The leader epochs and their start offsets."""
        return self._epochs.entries()

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Set the topic's id. Raises InconsistentTopicIdError if the log has another one."""
        if self.topic_id is not None and self.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"The log of {self.topic_partition} is of topic id {self.topic_id}, not {topic_id}."
            )
        self.topic_id = topic_id

    def update_config(self, config: LogConfig) -> None:
        """Use another configuration from now on."""
        self.config = config

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, limited to the log's range; returns it. For followers and new logs."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        self._transactions.forget_decided(self.high_watermark)
        return self.high_watermark

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark to `offset`, for leaders; returns the old one, None if it did not move.

        Raises ValueError for an offset past the end.
        """
        if offset > self.log_end_offset:
            raise ValueError(
                f"{self.topic_partition}: high watermark {offset} is past the end of the log, {self.log_end_offset}"
            )
        before = self.high_watermark
        if offset <= before:
            return None
        self.high_watermark = offset
        self._transactions.forget_decided(offset)
        return before

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` starts at `start_offset`."""
        self._epochs.assign(epoch, start_offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """The end of the largest known epoch at or below `epoch`; None without one (KIP-101, KIP-279)."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    def append_as_leader(
        self,
        data: bytes,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LogAppendInfo:
        """Append batches and assign their offsets; a repeated batch is not appended and returns its first offsets.

        Raises CorruptRecordError, RecordTooLargeError and the errors of `ProducerAppend.append`; the log is unchanged
        then.
        """
        run, problem = find_batches(data)
        if problem is not None:
            raise problem
        placed: list[LogBatch] = []
        offset = self.log_end_offset
        for batch in run.batches:
            if batch.size > self.config.max_message_bytes:
                raise RecordTooLargeError(
                    f"A batch of {batch.size} bytes is larger than the {self.config.max_message_bytes} that "
                    f"max.message.bytes of {self.topic_partition.topic} allows."
                )
            placed.append(batch.placed(offset, leader_epoch))
            offset = placed[-1].last_offset + 1
        return self._append(BatchRun.of(placed), origin)

    def append_as_follower(self, data: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the leader's offsets; batches of an epoch after `leader_epoch` are skipped.

        Raises UnexpectedAppendOffsetError for batches that do not continue the log.
        """
        run, problem = find_batches(data, expected=self.log_end_offset, latest_epoch=leader_epoch)
        if problem is not None:
            raise problem
        return self._append(run, AppendOrigin.REPLICATION)

    def _append(self, run: BatchRun, origin: AppendOrigin) -> LogAppendInfo:
        if not run:
            return LogAppendInfo(log_start_offset=self.log_start_offset)
        effective = run.effective_batches if origin is AppendOrigin.REPLICATION else run.batches
        producers, duplicate = self.producers.check(effective, origin)
        if duplicate is not None:
            return LogAppendInfo(
                first_offset=duplicate.first_offset,
                last_offset=duplicate.last_offset,
                log_start_offset=self.log_start_offset,
                max_timestamp=duplicate.timestamp,
                log_append_time=duplicate.timestamp,
            )
        for batch in effective:
            if batch.leader_epoch != self._epochs.latest:
                self._epochs.assign(batch.leader_epoch, batch.base_offset)
        self._write(run)
        self.producers.update(producers)
        for ended in self._transactions.append(effective):
            self._note_aborted(ended)
        self.log_end_offset = run.last_offset + 1
        return LogAppendInfo(
            first_offset=run.first_offset,
            last_offset=run.last_offset,
            log_start_offset=self.log_start_offset,
            max_timestamp=run.max_timestamp,
            last_leader_epoch=run.last_leader_epoch,
            size_in_bytes=run.size,
        )

    def read(
        self, offset: int, max_bytes: int, isolation: FetchIsolation, *, min_one_message: bool = True
    ) -> FetchDataInfo:
        """Read whole batches from the one that contains `offset`, up to `max_bytes`.

        With `min_one_message`, at least one batch of any size. Raises OffsetOutOfRangeError for an offset before the
        start or past the end.
        """
        start, last = self.log_start_offset, self.log_end_offset - 1
        if not start <= offset <= last + 1:
            raise OffsetOutOfRangeError(
                f"Offset {offset} is not in {self.topic_partition}, which holds {start} to {last}."
            )
        end = readable_end(self, isolation)
        found: list[LogBatch] = []
        size = 0
        if offset < end:
            for batch in self._batches_from(offset):
                if batch.base_offset >= end:
                    break
                if size + batch.size > max_bytes and (found or not min_one_message):
                    break
                found.append(batch)
                size += batch.size
                if batch.last_offset + 1 >= end:
                    break  # where nothing follows, the file is not asked again
        aborted: tuple[AbortedTransaction, ...] = ()
        if isolation is FetchIsolation.TXN_COMMITTED:
            upper = found[-1].last_offset + 1 if found else offset
            aborted = self._transactions.aborted_between(offset, upper)
        return FetchDataInfo(
            fetch_offset=offset, batches=tuple(found), size_in_bytes=size, aborted_transactions=aborted
        )

    def truncate_to(self, offset: int) -> bool:
        """Remove all batches with records at or after `offset`; returns whether the log was longer.

        Epochs that start at or after `offset` are removed in any case.
        """
        if offset < 0:
            raise ValueError(f"{self.topic_partition} can't be truncated to offset {offset}")
        if offset >= self.log_end_offset:
            # a leader that appended nothing has noted its epoch at the log end, where the next leader has another
            self._epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self._cut(offset)
        self._epochs.truncate_from_end(offset)
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Remove all batches and epochs, and continue at `offset`."""
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self._restart(offset)
        self._epochs.clear()
        self._transactions.load({})
        self.producers.load(())
        self.log_end_offset = offset
        self.high_watermark = max(self.log_start_offset, min(self.high_watermark, self.log_end_offset))

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Remove the records below `offset`; returns whether the log start offset moved.

        Raises OffsetOutOfRangeError for an offset past the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition} can't start at offset {offset}: its high watermark is {self.high_watermark}."
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self._epochs.truncate_from_start(offset)
        self._transactions.forget_below(offset)
        self._drop_below(offset)
        return True

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Remove the producers without writes for `expiration_ms`; their next batch may have any sequence number."""
        self.producers.remove_expired(now_ms, expiration_ms)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record at or after `timestamp` (epoch ms, or one of ListOffsets' negative values)."""
        from kraftlake.replica_manager.logs import timestamps

        if timestamp in (timestamps.EARLIEST_TIMESTAMP, timestamps.EARLIEST_LOCAL_TIMESTAMP):
            epoch = self._epochs.first_at(self.log_start_offset)
            return TimestampAndOffset(timestamps.NO_TIMESTAMP, self.log_start_offset, epoch)
        if timestamp in (timestamps.LATEST_TIERED_TIMESTAMP, timestamps.EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return TimestampAndOffset(timestamps.NO_TIMESTAMP, -1, -1)  # there is no tiered storage
        if timestamp == timestamps.MAX_TIMESTAMP:
            latest = self._latest_batch()
            return None if latest is None else timestamps.first_at(latest, latest.max_timestamp, self.log_start_offset)
        for batch in self._batches_with(timestamp):
            if batch.max_timestamp >= timestamp:
                found = timestamps.first_at(batch, timestamp, self.log_start_offset)
                if found is not None:
                    return found
        return None


def readable_end(log: PartitionLog, isolation: FetchIsolation) -> int:
    """Return the end of the log for a reader."""
    if isolation is FetchIsolation.LOG_END:
        return log.log_end_offset
    return log.high_watermark if isolation is FetchIsolation.HIGH_WATERMARK else log.last_stable_offset


def is_past_end(log: PartitionLog, offset: int, isolation: FetchIsolation) -> bool:
    """Whether the batch that contains `offset` starts after the log's end for a reader.

    Raises OffsetOutOfRangeError for an offset outside the log.
    """
    end = readable_end(log, isolation)
    if offset <= end:
        return False
    held = log.read(offset, 1, FetchIsolation.LOG_END).batches
    return not held or held[0].base_offset > end
