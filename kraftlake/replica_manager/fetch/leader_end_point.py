"""A leader as its fetchers see it, over a network or within one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.logs.partition_log import OffsetAndEpoch
from kraftlake.replica_manager.partition.leader import FetchPartition
from kraftlake.runtime.errors import KraftlakeError


class LeaderUnreachableError(KraftlakeError):
    """The leader did not answer."""


@attrs.frozen(kw_only=True)
class FetchRequest:
    """A follower's fetch. With a session (KIP-227) `partitions` are those that differ from the last one.

    `session_id` 0 with `session_epoch` 0 asks for a session, −1 ends one. `forgotten` are fetched no longer.
    """

    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partitions: Mapping[TopicPartition, FetchPartition]
    forgotten: tuple[TopicPartition, ...] = ()
    session_id: int = 0
    session_epoch: int = 0


@attrs.frozen(kw_only=True, weakref_slot=False)
class FetchedPartition:
    """What a leader answers for one partition; `data` are whole batches, the last one maybe cut off."""

    error: ErrorCode = ErrorCode.NONE
    data: bytes = attrs.field(default=b"", repr=False)
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging_epoch: OffsetAndEpoch | None = None


@attrs.frozen(kw_only=True)
class FetchResponse:
    """A leader's answer; with an error for the whole request `partitions` are empty.

    In a session, partitions of which there is nothing to tell are left out.
    """

    error: ErrorCode = ErrorCode.NONE
    session_id: int = 0
    partitions: Mapping[TopicPartition, FetchedPartition] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, weakref_slot=False)
class EpochEndOffset:
    """Where an epoch ended at the leader (OffsetsForLeaderEpoch); None where it does not know."""

    error: ErrorCode = ErrorCode.NONE
    end: OffsetAndEpoch | None = None


class LeaderEndPoint(Protocol):
    """Asks one leader. Any call may raise LeaderUnreachableError. Source: kafka.server.LeaderEndPoint.

    One thread asks; any thread may `close`.
    """

    @property
    def broker_end_point(self) -> BrokerEndPoint:
        """Who it is."""

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        """Whether its answers to fetches tell where the follower diverges (KIP-595).

        Otherwise a follower asks for the ends of epochs, again and again, until it is truncated.
        """

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Fetch; may take as long as the request allows."""

    def epoch_end_offsets(
        self, epochs: Mapping[TopicPartition, tuple[int, int]]
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """Where epochs ended: (current leader epoch, epoch) by partition."""

    def earliest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:
        """Where the leader's log starts; ReplicationError with the leader's error."""

    def latest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:
        """Where the leader's log ends; ReplicationError with the leader's error."""

    def close(self) -> None:
        """Ask no more, at once: a call that waits raises LeaderUnreachableError, as every later one does.

        Returns without waiting for that call, for it is called with locks held.
        """
