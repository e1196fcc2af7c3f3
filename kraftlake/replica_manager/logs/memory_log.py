"""A replica's log in memory: for replay, simulations and tests. Same rules as on disk, nothing survives."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from kraftlake.delta import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import (
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
)
from kraftlake.replica_manager.logs.leader_epochs import LeaderEpochs
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.open_transactions import Transactions
from kraftlake.replica_manager.logs.partition_log import (
    AbortedTransaction,
    AppendOrigin,
    FetchDataInfo,
    FetchIsolation,
    LogAppendInfo,
    OffsetAndEpoch,
    TimestampAndOffset,
    readable_end,
)
from kraftlake.replica_manager.logs.producer_state import ProducerStates


class MemoryPartitionLog:
    """A `PartitionLog` of batches in a list. Not thread-safe: a partition's lock guards it."""

    __slots__ = (
        "_batches",
        "_ends",
        "_epochs",
        "_hw",
        "_leo",
        "_producers",
        "_start",
        "_transactions",
        "config",
        "directory",
        "topic_id",
        "topic_partition",
    )  # fmt: skip

    def __init__(
        self, topic_partition: TopicPartition, topic_id: Uuid | None, directory: str, config: LogConfig
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.directory = directory
        self.config = config
        self._batches: list[LogBatch] = []
        self._ends: list[int] = []
        self._start = self._leo = self._hw = 0
        self._epochs = LeaderEpochs()
        self._transactions = Transactions()
        self._producers = ProducerStates(topic_partition)

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self._start

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._leo

    @property
    def high_watermark(self) -> int:
        """The end of what is known to be committed."""
        return self._hw

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or where the first transaction that is open below it began."""
        return self._transactions.last_stable_offset(self._hw)

    @property
    def latest_epoch(self) -> int | None:
        """The last leader epoch that it knows the start of."""
        return self._epochs.latest

    @property
    def batches(self) -> tuple[LogBatch, ...]:
        """All that it holds."""
        return tuple(self._batches)

    @property
    def producers(self) -> ProducerStates:
        """What its producers have written last."""
        return self._producers

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """The leader epochs and where they began."""
        return self._epochs.entries()

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Note the topic's id."""
        if self.topic_id is not None and self.topic_id != topic_id:
            raise InconsistentTopicIdError(
                f"The log of {self.topic_partition} is of topic id {self.topic_id}, not {topic_id}."
            )
        self.topic_id = topic_id

    def update_config(self, config: LogConfig) -> None:
        """Heed another configuration."""
        self.config = config

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, within the log."""
        self._hw = max(self._start, min(offset, self._leo))
        return self._hw

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark; gives the old one if it moved."""
        if offset > self._leo:
            raise ValueError(f"{self.topic_partition}: high watermark {offset} is past the end of the log, {self._leo}")
        before = self._hw
        if offset <= before:
            return None
        self._hw = offset
        return before

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Note where an epoch began."""
        self._epochs.assign(epoch, start_offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """Where the largest known epoch at or below `epoch` ended."""
        return self._epochs.end_offset_for(epoch, self._leo)

    def append_as_leader(
        self,
        data: bytes,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> LogAppendInfo:
        """Append batches and give them offsets."""
        batches = list(log_batches(data))
        for batch in batches:
            batch.check()
            if batch.size > self.config.max_message_bytes:
                raise RecordTooLargeError(
                    f"A batch of {batch.size} bytes is larger than the {self.config.max_message_bytes} that "
                    f"max.message.bytes of {self.topic_partition.topic} allows."
                )
        placed: list[LogBatch] = []
        offset = self._leo
        for batch in batches:
            placed.append(batch.placed(offset, leader_epoch))
            offset = placed[-1].last_offset + 1
        return self._append(placed, origin)

    def append_as_follower(self, data: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches as the leader has them, up to the first of a later leader epoch."""
        batches: list[LogBatch] = []
        expected = self._leo
        for batch in log_batches(data):
            batch.check()
            if batch.leader_epoch > leader_epoch:
                break
            if batch.base_offset < expected:
                raise UnexpectedAppendOffsetError(
                    f"{self.topic_partition}: a batch at offset {batch.base_offset} is no continuation of a log that "
                    f"ends at {expected}.",
                    batch.base_offset,
                    batch.last_offset,
                )
            batches.append(batch)
            expected = batch.last_offset + 1
        return self._append(batches, AppendOrigin.REPLICATION)

    def _append(self, batches: list[LogBatch], origin: AppendOrigin) -> LogAppendInfo:
        if not batches:
            return LogAppendInfo(log_start_offset=self._start)
        producers, duplicate = self._producers.check(batches, origin)
        if duplicate is not None:
            return LogAppendInfo(
                first_offset=duplicate.first_offset,
                last_offset=duplicate.last_offset,
                log_start_offset=self._start,
                max_timestamp=duplicate.timestamp,
            )
        self._producers.update(producers)
        for batch in batches:
            if batch.leader_epoch != self._epochs.latest:
                self._epochs.assign(batch.leader_epoch, batch.base_offset)
            self._transactions.append(batch)
            self._batches.append(batch)
            self._ends.append(batch.last_offset)
        self._leo = batches[-1].last_offset + 1
        return LogAppendInfo(
            first_offset=batches[0].base_offset,
            last_offset=batches[-1].last_offset,
            log_start_offset=self._start,
            max_timestamp=max(batch.max_timestamp for batch in batches),
            last_leader_epoch=batches[-1].leader_epoch,
            size_in_bytes=sum(batch.size for batch in batches),
        )

    def read(
        self, offset: int, max_bytes: int, isolation: FetchIsolation, *, min_one_message: bool = True
    ) -> FetchDataInfo:
        """Whole batches from the one that holds `offset` on."""
        if not self._start <= offset <= self._leo:
            raise OffsetOutOfRangeError(
                f"Offset {offset} is not in {self.topic_partition}, which holds {self._start} to {self._leo - 1}."
            )
        end = readable_end(self, isolation)
        found: list[LogBatch] = []
        size = 0
        for batch in self._from(offset):
            if batch.base_offset >= end:
                break
            if size + batch.size > max_bytes and (found or not min_one_message):
                break
            found.append(batch)
            size += batch.size
        aborted: tuple[AbortedTransaction, ...] = ()
        if isolation is FetchIsolation.TXN_COMMITTED:
            upper = found[-1].last_offset + 1 if found else offset
            aborted = self._transactions.aborted_between(offset, upper)
        return FetchDataInfo(
            fetch_offset=offset, batches=tuple(found), size_in_bytes=size, aborted_transactions=aborted
        )

    def _from(self, offset: int) -> Iterator[LogBatch]:
        for place in range(bisect_left(self._ends, offset), len(self._batches)):
            yield self._batches[place]

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on, a batch that holds it as a whole."""
        if offset < 0:
            raise ValueError(f"{self.topic_partition} can't be truncated to offset {offset}")
        if offset >= self._leo:
            # a leader that appended nothing has noted its epoch at its end, where the next leader has another
            self._epochs.truncate_from_end(self._leo)
            return False
        if offset < self._start:
            self.truncate_fully_and_start_at(offset)
            return True
        keep = bisect_left(self._ends, offset)
        del self._batches[keep:], self._ends[keep:]
        self._leo = offset
        self._hw = min(self._hw, offset)
        self._epochs.truncate_from_end(offset)
        self._transactions.rebuild(self._batches)
        self._producers.rebuild(self._batches)
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything and go on at `offset`."""
        self._batches.clear()
        self._ends.clear()
        self._epochs.clear()
        self._transactions.rebuild(())
        self._producers.rebuild(())
        self._leo = offset
        self._start = offset if log_start_offset is None else log_start_offset
        self._hw = max(self._start, min(self._hw, self._leo))

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Forget what is below `offset`."""
        if offset > self._hw:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition} can't start at offset {offset}: its high watermark is {self._hw}."
            )
        if offset <= self._start:
            return False
        self._start = offset
        self._epochs.truncate_from_start(offset)
        gone = bisect_left(self._ends, offset)
        del self._batches[:gone], self._ends[:gone]
        return True

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that wrote nothing for a while."""
        self._producers.remove_expired(now_ms, expiration_ms)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first batch with a record at or after `timestamp`, by its own first offset."""
        from kraftlake.replica_manager.logs.timestamps import find_offset

        return find_offset(self._batches, self._start, timestamp)
