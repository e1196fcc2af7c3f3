"""The requests of fetchers to a leader, over a network or within one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.logs.log_values import AbortedTransaction
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.runtime.errors import KraftlakeError


class LeaderUnreachableError(KraftlakeError):
    """The leader did not answer."""


@attrs.frozen(kw_only=True)
class FetchRequest:
    """A follower's fetch. In a session (KIP-227), `partitions` are those changed since the last request.

    `session_id` 0 with `session_epoch` 0 requests a session, epoch −1 ends one. `forgotten` partitions leave the
    session; so do those of `forgotten_ids`, by the topic ids under which they entered it: the topic may be deleted.
    """

    params: FetchParams
    partitions: Mapping[TopicPartition, FetchPartition]
    forgotten: tuple[TopicPartition, ...] = ()
    forgotten_ids: frozenset[tuple[Uuid, int]] = frozenset()
    session_id: int = 0
    session_epoch: int = 0


@attrs.frozen(kw_only=True, weakref_slot=False)
class FetchedPartition:
    """The leader's answer for one partition; `data` has whole batches, except that the last one may be truncated.

    `topic_id` is the id in the request. The fields after `diverging_epoch` are for consumers.
    """

    error: ErrorCode = ErrorCode.NONE
    topic_id: Uuid | None = None
    data: bytes = attrs.field(default=b"", repr=False)
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging_epoch: OffsetAndEpoch | None = None
    last_stable_offset: int = -1
    aborted_transactions: tuple[AbortedTransaction, ...] = ()
    preferred_read_replica: int | None = None


@attrs.frozen(kw_only=True)
class FetchResponse:
    """The leader's answer; with an error for the whole request, `partitions` is empty.

    In a session, unchanged partitions are omitted.
    """

    error: ErrorCode = ErrorCode.NONE
    session_id: int = 0
    partitions: Mapping[TopicPartition, FetchedPartition] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, weakref_slot=False)
class EpochEndOffset:
    """The answer to OffsetsForLeaderEpoch: the end of the epoch, None if unknown."""

    error: ErrorCode = ErrorCode.NONE
    end: OffsetAndEpoch | None = None


class LeaderEndPoint(Protocol):
    """Requests to one leader. Any call may raise LeaderUnreachableError. Source: kafka.server.LeaderEndPoint.

    One thread sends requests; any thread may call `close`.
    """

    @property
    def broker_end_point(self) -> BrokerEndPoint:
        """The leader's id and address."""

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        """Whether fetch responses name the diverging epoch (KIP-595).

        Otherwise the fetcher requests the ends of epochs until the truncation is complete.
        """

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Fetch; waits at most as long as the request allows."""

    def epoch_end_offsets(
        self, epochs: Mapping[TopicPartition, tuple[int, int]]
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """The ends of leader epochs, requested by (current leader epoch, epoch)."""

    def earliest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:
        """The leader's log start offset. Raises ReplicationError with the leader's error."""

    def latest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:
        """The leader's log end offset. Raises ReplicationError with the leader's error."""

    def close(self) -> None:
        """Close at once: the call in flight and every later one raise LeaderUnreachableError.

        Returns without waiting for the call in flight, because locks are held.
        """
