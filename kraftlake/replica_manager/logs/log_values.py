"""The values that a replica's log takes and returns."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

import attrs

from kraftlake.replica_manager.logs.log_batch import LogBatch

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
