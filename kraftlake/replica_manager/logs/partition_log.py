"""The interface of a replica's log."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, Protocol

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_config import LogConfig

UNKNOWN_OFFSET: Final = -1
"""The log end offset of a replica that has not fetched yet."""


class FetchIsolation(Enum):
    """The end of the log for a reader: followers read to the log end, clients to the committed end."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    TXN_COMMITTED = "last stable offset"


class AppendOrigin(Enum):
    """The writer of a batch. Source: org.apache.kafka.storage.internals.log.AppendOrigin."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class OffsetAndEpoch(NamedTuple):
    """An epoch and its end offset (exclusive)."""

    offset: int
    leader_epoch: int


class TimestampAndOffset(NamedTuple):
    """The timestamp (epoch ms) and offset of a record; `leader_epoch` is None where it is unknown."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class AbortedTransaction(NamedTuple):
    """An aborted transaction: a reader of committed records skips the producer's records from `first_offset` on."""

    producer_id: int
    first_offset: int


@attrs.frozen(kw_only=True, weakref_slot=False)
class LogAppendInfo:
    """The result of an append: the offsets of the records, −1 if nothing was appended.

    For a batch that its producer has repeated, the offsets are those of the first append and `size_in_bytes` is 0.
    """

    first_offset: int = -1
    last_offset: int = -1
    log_start_offset: int = -1
    max_timestamp: int = -1
    last_leader_epoch: int = -1
    size_in_bytes: int = 0
    log_append_time: int | None = None
    """The leader's timestamp in epoch ms (message.timestamp.type=LogAppendTime), or that of a repeated batch."""
    leader_hw_incremented: bool | None = None
    """Whether the append moved the high watermark; None for a follower's append, which does not move it."""

    def with_more(self, more: LogAppendInfo) -> LogAppendInfo:
        """Return the combined result of this append and the next one."""
        return attrs.evolve(
            more,
            first_offset=self.first_offset,
            max_timestamp=max(self.max_timestamp, more.max_timestamp),
            size_in_bytes=self.size_in_bytes + more.size_in_bytes,
        )


@attrs.frozen(kw_only=True, weakref_slot=False)
class FetchDataInfo:
    """The result of a read: whole batches from the one that contains `fetch_offset` on."""

    fetch_offset: int
    batches: tuple[LogBatch, ...] = ()
    size_in_bytes: int = 0
    aborted_transactions: tuple[AbortedTransaction, ...] = ()


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


class PartitionLog(Protocol):
    """A replica's log. Ends are exclusive; log_start_offset ≤ high_watermark ≤ log_end_offset always holds.

    Any method may raise KafkaStorageError when the log directory has failed. Source:
    org.apache.kafka.storage.internals.log.UnifiedLog.
    """

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""

    @property
    def topic_id(self) -> Uuid | None:
        """The topic's id, as in partition.metadata; None for a log without one."""

    @property
    def directory(self) -> str:
        """The log directory."""

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""

    def update_config(self, config: LogConfig) -> None:
        """Use another configuration from now on."""

    @property
    def log_start_offset(self) -> int:
        """The first readable offset."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def high_watermark(self) -> int:
        """The end of the records known to be committed."""

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of a transaction open below it."""

    @property
    def latest_epoch(self) -> int | None:
        """The last leader epoch whose start is known."""

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Set the topic's id. Raises InconsistentTopicIdError if the log has another one."""

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, limited to the log's range; returns it. For followers and new logs."""

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark to `offset`, for leaders; returns the old one, None if it did not move.

        Raises ValueError for an offset past the end.
        """

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` starts at `start_offset`."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """The end of the largest known epoch at or below `epoch`; None without one (KIP-101, KIP-279)."""

    def append_as_leader(self, data: bytes, leader_epoch: int, origin: AppendOrigin) -> LogAppendInfo:
        """Append batches and assign their offsets; a repeated batch is not appended and returns its first offsets.

        Raises CorruptRecordError, RecordTooLargeError and the errors of `ProducerAppend.append`; the log is unchanged
        then.
        """

    def append_as_follower(self, data: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the leader's offsets; batches of an epoch after `leader_epoch` are skipped.

        Raises UnexpectedAppendOffsetError for batches that do not continue the log.
        """

    def read(
        self, offset: int, max_bytes: int, isolation: FetchIsolation, *, min_one_message: bool = True
    ) -> FetchDataInfo:
        """Read whole batches from the one that contains `offset`, up to `max_bytes`.

        With `min_one_message`, at least one batch of any size. Raises OffsetOutOfRangeError for an offset before the
        start or past the end.
        """

    def truncate_to(self, offset: int) -> bool:
        """Remove all batches with records at or after `offset`; returns whether the log was longer.

        Epochs that start at or after `offset` are removed in any case.
        """

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Remove all batches and epochs, and continue at `offset`."""

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Remove the records below `offset`; returns whether the log start offset moved.

        Raises OffsetOutOfRangeError for an offset past the high watermark.
        """

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Remove the producers without writes for `expiration_ms`; their next batch may have any sequence number."""

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record at or after `timestamp` (epoch ms, or one of ListOffsets' negative values)."""
