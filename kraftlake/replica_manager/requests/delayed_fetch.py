"""A fetch that waits for data. Source: kafka.server.DelayedFetch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.logs.partition_log import is_past_end, readable_end
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition, log_with_epoch
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.log_reads import FetchAnswer, must_be_throttled, read_from_log
from kraftlake.replica_manager.requests.purgatory import DelayedOperation

FetchAnswers: TypeAlias = Mapping[TopicPartition, FetchAnswer]


class DelayedFetch(DelayedOperation):
    """Waits for `params.min_bytes`, or until waiting is pointless.

    Waiting is pointless when the broker no longer leads a partition, leads it in another epoch or does not host it,
    when its log directory has failed, when the readable log ends below the fetch offset, or when the logs diverge.
    The partitions are read again for the answer.
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        params: FetchParams,
        wanted: Mapping[TopicPartition, FetchPartition],
        on_answer: Callable[[FetchAnswers], None],
        *,
        throttle: ReplicationQuota | None = None,
    ) -> None:
        super().__init__()
        self._replicas = replica_manager
        self._params = params
        self._wanted = wanted
        self._on_answer = on_answer
        self._throttle = throttle

    def can_complete(self) -> bool:
        """Whether enough bytes are readable, or waiting is pointless."""
        available = 0
        for name, fetch in self._wanted.items():
            try:
                readable = self._readable(name, fetch)
            except Exception:
                return True  # the answer has the error
            if readable is None:
                return True
            available += readable
            if available >= self._params.min_bytes:
                return True
        return False

    def _readable(self, name: TopicPartition, fetch: FetchPartition) -> int | None:
        """The number of readable bytes of a partition, None if waiting is pointless."""
        params = self._params
        partition = self._replicas.partition_or_raise(name)
        with partition.lock:
            log = log_with_epoch(partition, fetch.current_leader_epoch, require_leader=params.fetch_only_leader)
            if fetch.last_fetched_epoch is not None:
                end = log.end_offset_for_epoch(fetch.last_fetched_epoch)
                if end is None or end.epoch < fetch.last_fetched_epoch or end.offset < fetch.fetch_offset:
                    return None
            if fetch.fetch_offset < log.log_start_offset or is_past_end(log, fetch.fetch_offset, params.isolation):
                return None
            if fetch.fetch_offset >= readable_end(log, params.isolation):
                return 0
            if self._throttle is not None and must_be_throttled(self._throttle, partition, params.replica_id):
                return 0
            return log.read(fetch.fetch_offset, fetch.max_bytes, params.isolation).size_in_bytes

    def on_complete(self) -> None:
        """Read and answer, without another update of the follower's fetch state."""
        answers = read_from_log(
            self._replicas, self._params, self._wanted, throttle=self._throttle, update_fetch_state=False
        )
        self._on_answer(answers)
