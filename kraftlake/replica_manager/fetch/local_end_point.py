"""The local broker's replicas as leaders of their future logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.errors import error_of
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.leader_end_point import EpochEndOffset, FetchRequest, FetchResponse
from kraftlake.replica_manager.partition.leader import last_offset_for_leader_epoch
from kraftlake.replica_manager.requests.fetch_serving import fetched_of
from kraftlake.replica_manager.requests.log_reads import read_from_log

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager


class LocalEndPoint:
    """A `LeaderEndPoint` that reads this broker's logs up to their end, as leader or follower, and never waits.

    Source: kafka.server.LocalLeaderEndPoint.
    """

    is_truncation_on_fetch_supported = False

    def __init__(self, manager: ReplicaManager, broker_end_point: BrokerEndPoint) -> None:
        self.broker_end_point = broker_end_point
        self._manager = manager

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Read without waiting."""
        answers = read_from_log(self._manager, request.params, request.partitions)
        return FetchResponse(partitions={name: fetched_of(answer) for name, answer in answers.items()})

    def epoch_end_offsets(
        self, epochs: Mapping[TopicPartition, tuple[int, int]]
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """The ends of leader epochs; for an epoch after the log's latest epoch, the end of the latest epoch.

        A replica that was truncated may lack the latest epoch of its future log, which then diverges earlier.
        """
        answers: dict[TopicPartition, EpochEndOffset] = {}
        for name, (current, epoch) in epochs.items():
            try:
                partition = self._manager.partition_or_raise(name)
                with partition.lock:
                    end = last_offset_for_leader_epoch(partition, current, epoch, require_leader=False)
                    if end is None:
                        log = partition.local_log
                        latest = log.latest_epoch  # None in an empty log, where every epoch is empty
                        end = OffsetAndEpoch(log.log_end_offset, epoch if latest is None else latest)
                answers[name] = EpochEndOffset(end=end)
            except Exception as error:
                answers[name] = EpochEndOffset(error=error_of(error))
        return answers

    def earliest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:  # noqa: ARG002
        """The log start offset of the replica."""
        return self._manager.partition_or_raise(partition).local_log.log_start_offset

    def latest_offset(self, partition: TopicPartition, current_leader_epoch: int) -> int:  # noqa: ARG002
        """The log end offset of the replica."""
        return self._manager.partition_or_raise(partition).local_log.log_end_offset

    def close(self) -> None:
        """Return without action: no call waits."""
