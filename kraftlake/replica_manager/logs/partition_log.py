"""The log of one replica as the replica manager sees it, wherever its bytes lie."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, Protocol

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_config import LogConfig

UNKNOWN_OFFSET: Final = -1
"""The log end offset of a replica that has not been heard of."""


class FetchIsolation(Enum):
    """Up to where a reader may see the log: followers to its end, clients to what is committed."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    TXN_COMMITTED = "last stable offset"


class AppendOrigin(Enum):
    """Who wrote what is appended. Source: org.apache.kafka.storage.internals.log.AppendOrigin."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
    RAFT_LEADER = "raft leader"


class OffsetAndEpoch(NamedTuple):
    """The end (exclusive) of what was written in an epoch, and that epoch."""

    offset: int
    leader_epoch: int


class TimestampAndOffset(NamedTuple):
    """The first record at or after a time; `leader_epoch` is None where it is not known."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class AbortedTransaction(NamedTuple):
    """Records of this producer from `first_offset` on were aborted, for a reader of committed ones."""

    producer_id: int
    first_offset: int


@attrs.frozen(kw_only=True, weakref_slot=False)
class LogAppendInfo:
    """What an append has done: offsets are those that the records got; −1 where nothing was appended.

    For a batch that its producer has repeated they are those that it got the first time, and `size_in_bytes` is 0.
    """

    first_offset: int = -1
    last_offset: int = -1
    log_start_offset: int = -1
    max_timestamp: int = -1
    last_leader_epoch: int = -1
    size_in_bytes: int = 0
    leader_hw_incremented: bool | None = None
    """None for a follower's append, which moves no high watermark by itself."""


@attrs.frozen(kw_only=True, weakref_slot=False)
class FetchDataInfo:
    """What a read has found from `fetch_offset` on; `first_entry_incomplete` where the limit cut the first batch."""

    fetch_offset: int
    batches: tuple[LogBatch, ...] = ()
    size_in_bytes: int = 0
    first_entry_incomplete: bool = False
    aborted_transactions: tuple[AbortedTransaction, ...] = ()


def readable_end(log: PartitionLog, isolation: FetchIsolation) -> int:
    """Where the log ends for a reader."""
    if isolation is FetchIsolation.LOG_END:
        return log.log_end_offset
    return log.high_watermark if isolation is FetchIsolation.HIGH_WATERMARK else log.last_stable_offset


def is_past_end(log: PartitionLog, offset: int, isolation: FetchIsolation) -> bool:
    """Whether the batch that holds `offset` begins after the log's end for a reader.

    OffsetOutOfRangeError for an offset that is not in the log.
    """
    end = readable_end(log, isolation)
    if offset <= end:
        return False
    held = log.read(offset, 1, FetchIsolation.LOG_END).batches
    return not held or held[0].base_offset > end


class PartitionLog(Protocol):
    """A replica's log. Offsets are Kafka's; an end is exclusive.

    Always log_start_offset ≤ high_watermark ≤ log_end_offset. Any method may raise KafkaStorageError when the
    directory has failed. Source: org.apache.kafka.storage.internals.log.UnifiedLog.
    """

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose log it is."""

    @property
    def topic_id(self) -> Uuid | None:
        """The topic's id, as partition.metadata has it; None in a log that never got one."""

    @property
    def directory(self) -> str:
        """The log directory that it lies in."""

    @property
    def config(self) -> LogConfig:
        """The topic's configuration."""

    def update_config(self, config: LogConfig) -> None:
        """Heed another configuration from now on."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""

    @property
    def high_watermark(self) -> int:
        """The end of what is known to be committed."""

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the first offset of a transaction that is open below it."""

    @property
    def latest_epoch(self) -> int | None:
        """The last leader epoch that it knows the start of."""

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Note the topic's id; InconsistentTopicIdError when it has another."""

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark to `offset`, but within the log; gives what it is then. For followers and loading."""

    def maybe_increment_high_watermark(self, offset: int) -> int | None:
        """Raise the high watermark to `offset`, for leaders; gives the old one, None when it did not move.

        ValueError for an offset past the end.
        """

    def assign_epoch_start_offset(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` began at `start_offset`, unless a later epoch is known."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """Where the largest known epoch at or below `epoch` ended; None where none is known (KIP-101, KIP-279)."""

    def append_as_leader(self, data: bytes, leader_epoch: int, origin: AppendOrigin) -> LogAppendInfo:
        """Append batches and give them offsets, unless a producer repeats one: then its first offsets are told.

        CorruptRecordError, RecordTooLargeError and those of a producer's batches (see `ProducerAppend`) leave the log
        as it was.
        """

    def append_as_follower(self, data: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the offsets that the leader gave; those of an epoch after `leader_epoch` are left out.

        UnexpectedAppendOffsetError when they don't continue the log.
        """

    def read(
        self, offset: int, max_bytes: int, isolation: FetchIsolation, *, min_one_message: bool = True
    ) -> FetchDataInfo:
        """Whole batches from the one that holds `offset` on, up to `max_bytes`, but one at least if so asked.

        OffsetOutOfRangeError for an offset before the start or past the end.
        """

    def truncate_to(self, offset: int) -> bool:
        """Drop everything from `offset` on; whether there was something to drop.

        Epochs that began at or after `offset` are forgotten even if there was not.
        """

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything, epochs too, and go on at `offset`."""

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Forget what is below `offset`; OffsetOutOfRangeError past the high watermark. Whether it moved."""

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that wrote nothing for `expiration_ms`: their next batch may have any sequence number."""

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record at or after `timestamp` (epoch ms, or one of ListOffsets' negative wishes)."""
