"""Replicates the partitions of one leader. A state machine, driven by a thread or by a simulator.

Source: kafka.server.AbstractFetcherThread and ReplicaFetcherThread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    KafkaStorageError,
    ReplicationError,
)
from kraftlake.replica_manager.fetch.fetch_session import FetchSession
from kraftlake.replica_manager.fetch.fetch_states import FetchStates, PartitionFetchState, ReplicaState
from kraftlake.replica_manager.fetch.fetcher import FetcherFigures
from kraftlake.replica_manager.fetch.leader_end_point import (
    EpochEndOffset,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    LeaderEndPoint,
    LeaderUnreachableError,
)
from kraftlake.replica_manager.fetch.truncation import truncation_offset
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.log_values import FetchIsolation, LogAppendInfo
from kraftlake.replica_manager.partition.follower import (
    append_records_to_follower,
    truncate_fully_and_start_at,
    truncate_to,
)
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.runtime.log import get_logger

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager

_log = get_logger(__name__)
_NOTHING = LogAppendInfo()
"""The result for a partition without new data, shared because most of thousands of partitions have none in a round."""


class ReplicaFetcher(FetchStates):
    """Fetches partitions from one leader; each call of `do_work` is one round of truncating and fetching.

    An error of one partition delays the partition by `replica.fetch.backoff.ms`. An error that only new metadata can
    resolve removes the partition, which becomes one of `FetcherManager.failed_partitions`. Without a `quota` nothing
    is throttled. `name` is the name of the fetcher's thread.
    """

    def __init__(
        self,
        fetcher_id: int,
        leader: LeaderEndPoint,
        manager: ReplicaManager,
        *,
        quota: ReplicationQuota | None = None,
    ) -> None:
        super().__init__(leader.broker_end_point, manager)
        self.name = f"ReplicaFetcherThread-{fetcher_id}-{leader.broker_end_point.id}"
        self._end_point = leader
        self._config = manager.context.config
        self._quota = quota or ReplicationQuota(self._clock)
        self._session = FetchSession()
        self._raised: set[TopicPartition] = set()
        self.running = False
        self.requests = 0
        """The number of fetch requests that were answered or failed."""
        self.bytes = 0
        """The number of bytes appended."""

    def figures(self) -> FetcherFigures:
        """The counters and lags since the start."""
        return FetcherFigures(name=self.name, requests=self.requests, bytes=self.bytes, lags=self.lags())

    def start(self) -> None:
        """Start; the driver calls `do_work` from now on."""
        self.running = True

    def shutdown(self) -> None:
        """End: abort the request in flight and remove all partitions, so that a late answer changes nothing."""
        self.running = False
        try:
            self._end_point.close()
        finally:
            self.remove_all_partitions()

    def await_shutdown(self, timeout_s: float) -> bool:  # noqa: ARG002
        """Return at once: a fetcher without a thread has nothing to wait for."""
        return True

    # calls of the driver

    def do_work(self) -> bool:
        """Run one round; False if nothing was fetched, so that the driver waits `replica.fetch.backoff.ms`."""
        self.maybe_truncate()
        request = self.build_fetch()
        if request is None:
            return False
        try:
            response = self._end_point.fetch(request)
        except (LeaderUnreachableError, ReplicationError) as error:
            self.handle_failure(error)
        else:
            self.handle_response(response)
        return True

    def maybe_truncate(self) -> None:
        """Truncate the marked logs: by the leader's epochs where the log has epochs, else to the fetch offset."""
        with self._lock:
            now = self._clock.nanoseconds()
            truncating = [
                name for name, state in self._states.items() if state.is_truncating and state.ready_at_ns <= now
            ]
            by_epoch, asked = dict[TopicPartition, tuple[int, int]](), dict[TopicPartition, PartitionFetchState]()
            for name in truncating:
                epoch = self._latest_epoch(name)
                if epoch is None:
                    self._truncate_by(name, None)
                else:
                    asked[name] = self._states[name]
                    by_epoch[name] = (asked[name].current_leader_epoch, epoch)
        if not by_epoch:
            return
        try:
            ends = self._end_point.epoch_end_offsets(by_epoch)
        except LeaderUnreachableError as error:
            if self.running:
                _log.warning("epochs_not_fetched", fetcher=self.name, error=str(error))
            ends = {name: EpochEndOffset(error=ErrorCode.NETWORK_EXCEPTION) for name in by_epoch}
        with self._lock:
            for name, end in ends.items():
                # a partition that was removed, added again or marked for truncation meanwhile is asked for again
                if self._states.get(name) is asked[name]:
                    self._truncate_by(name, end)

    def build_fetch(self) -> FetchRequest | None:
        """The next fetch request; None when no partition is ready and the session has nothing to forget."""
        wanted: dict[TopicPartition, FetchPartition] = {}
        with self._lock:
            now = self._clock.nanoseconds()
            for name, state in self._select(now):
                try:
                    start = self._log_of(name).log_start_offset
                except ReplicationError:
                    self._delay([name])
                    continue
                wanted[name] = FetchPartition(
                    topic_id=state.topic_id,
                    fetch_offset=state.fetch_offset,
                    log_start_offset=start,
                    max_bytes=self._config.replica_fetch_max_bytes,
                    current_leader_epoch=state.current_leader_epoch,
                    last_fetched_epoch=None if self.into_future_logs else state.last_fetched_epoch,
                )
            partitions, forgotten = self._session.build(wanted)
            return self._request(partitions, forgotten) if wanted or forgotten else None

    def _select(self, now_ns: int) -> list[tuple[TopicPartition, PartitionFetchState]]:
        """The partitions to fetch now, in order."""
        return [
            (name, state)
            for name, state in self._states.items()
            if self._is_ready(state, now_ns) and not self._is_held_back(name, state)
        ]

    def _request(
        self, partitions: Mapping[TopicPartition, FetchPartition], forgotten: tuple[TopicPartition, ...]
    ) -> FetchRequest | None:
        params = FetchParams(
            replica_id=self._manager.context.broker_id,
            replica_epoch=self._manager.context.broker_epoch(),
            # the next request asks for what is forgotten to be heard again: it is not to wait for others' records
            max_wait_ms=0 if forgotten else self._config.replica_fetch_wait_max_ms,
            min_bytes=self._config.replica_fetch_min_bytes,
            max_bytes=self._config.replica_fetch_response_max_bytes,
            isolation=FetchIsolation.LOG_END,
        )
        return FetchRequest(
            params=params,
            partitions=partitions,
            forgotten=forgotten,
            session_id=self._session.session_id,
            session_epoch=self._session.epoch,
        )

    def handle_failure(self, error: Exception) -> None:
        """Delay all partitions: the leader did not answer."""
        if self.running:
            _log.warning("fetch_failed", fetcher=self.name, error=str(error))
        with self._lock:
            self.requests += 1
            self._session.handle_error()
            self._delay(self._states)

    def handle_response(self, response: FetchResponse) -> None:
        """Append the fetched batches, and handle the errors of the answer.

        The answer of a partition whose state has changed since the request is dropped: the partition was removed and
        added again, perhaps in another leader epoch, or it was truncated or delayed.
        """
        diverging: dict[TopicPartition, OffsetAndEpoch] = {}
        delayed: list[TopicPartition] = []
        with self._lock:
            self.requests += 1
            asked = self._session.partitions
            if not self._session.handle_response(response):
                return
            now = self._clock.nanoseconds()
            for name, fetched in response.partitions.items():
                state, request = self._states.get(name), asked.get(name)
                if (
                    state is None
                    or request is None
                    or not self._is_ready(state, now)
                    or request.fetch_offset != state.fetch_offset
                    # in a later epoch the same leader may have truncated the batches that it sent in the earlier one
                    or request.current_leader_epoch != state.current_leader_epoch
                ):
                    self._session.was_not_heard(name)
                    continue
                if fetched.error is not ErrorCode.NONE:
                    if self._handle_error(name, state, fetched.error):
                        delayed.append(name)
                elif fetched.diverging_epoch is not None:
                    # the high watermark and the log start offset are valid only after the truncation
                    diverging[name] = fetched.diverging_epoch
                    self._session.was_not_heard(name)
                elif not self._append(name, state, fetched):
                    delayed.append(name)
            for name, end in diverging.items():
                self._truncate_by(name, EpochEndOffset(end=end))
            self._delay(delayed)
            raised, self._raised = self._raised, set()
        if raised:
            self._manager.complete_delayed_fetches(raised)

    # one partition

    def _append(self, name: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition) -> bool:
        """Append the answer of one partition; False if the partition has to be delayed."""
        try:
            info = self._append_to_log(name, state, fetched)
        except CorruptRecordError as error:
            # the leader may be writing or truncating the batch: fetch it again
            _log.error("corrupt_batch_fetched", partition=str(name), offset=state.fetch_offset, error=str(error))
            return False
        except Exception as error:  # an error of one partition must not stop the others
            self._fail(name, "append", error)
            return True
        if info is None or name not in self._states:
            return True  # the future log was deleted, or has replaced the log
        appended = info.size_in_bytes
        offset = info.last_offset + 1 if appended else state.fetch_offset
        if appended or state.lag is None:
            lag = max(0, fetched.high_watermark - offset)
            epoch = info.last_leader_epoch if appended else state.last_fetched_epoch
            self._move_to_end(
                name,
                attrs.evolve(
                    state, fetch_offset=offset, lag=lag, state=ReplicaState.FETCHING, last_fetched_epoch=epoch
                ),
            )
        if appended:
            self.bytes += appended
            if self._quota.is_throttled(name):
                self._quota.record(appended)
        return True

    def _append_to_log(
        self, name: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition
    ) -> LogAppendInfo | None:
        partition = self._manager.partition_or_raise(name)
        with partition.lock:
            log = self._log_of(name)
            if state.fetch_offset != log.log_end_offset:
                raise ValueError(f"fetched offset {state.fetch_offset}, but the log ends at {log.log_end_offset}")
            # a leader before KIP-74 cuts an oversized batch off, and replication does not advance
            data = fetched.data
            if data and next(log_batches(data), None) is None:
                _log.error(
                    "oversized_batch_cut_off", partition=str(name), offset=state.fetch_offset, bytes=len(data),
                    help="raise replica.fetch.max.bytes above the topic's max.message.bytes",
                )  # fmt: skip
            info: LogAppendInfo | None = _NOTHING
            if data:
                epoch, is_future = state.current_leader_epoch, self.into_future_logs
                info = append_records_to_follower(partition, data, epoch, is_future=is_future)
            before = log.high_watermark
            if log.update_high_watermark(fetched.high_watermark) != before and not self.into_future_logs:
                self._raised.add(name)
            if fetched.log_start_offset > log.log_start_offset:
                log.maybe_increment_log_start_offset(min(fetched.log_start_offset, log.high_watermark))
            return info

    def _handle_error(self, name: TopicPartition, state: PartitionFetchState, error: ErrorCode) -> bool:
        """Handle a partition's error; True if the partition has to be delayed."""
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return not self._handle_out_of_range(name, state)
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail_fenced(name, state)
            return False
        quiet = error in (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        (_log.debug if quiet else _log.warning)(
            "fetch_error", fetcher=self.name, partition=str(name), offset=state.fetch_offset, error=error.name
        )
        return True

    def _handle_out_of_range(self, name: TopicPartition, state: PartitionFetchState) -> bool:
        try:
            self._move_to_end(name, self._offset_after_truncation(name, state))
        except FencedLeaderEpochError:
            self._fail_fenced(name, state)
        except (ReplicationError, LeaderUnreachableError) as error:
            _log.info("offset_not_fetched", partition=str(name), error=str(error))
            return False
        return True

    def _offset_after_truncation(self, name: TopicPartition, state: PartitionFetchState) -> PartitionFetchState:
        """Return the state after OFFSET_OUT_OF_RANGE.

        If the leader's log ends below the local log, truncate to its end. If it starts above the local end, restart the
        local log at its start. Otherwise the leader's log has meanwhile grown to the local end, and the fetch continues
        there.
        """
        log, epoch = self._log_of(name), state.current_leader_epoch
        leader_end = self._end_point.latest_offset(name, epoch)
        if leader_end < log.log_end_offset:
            _log.warning("truncated_to_leaders_end", partition=str(name), ours=log.log_end_offset, leaders=leader_end)
            self._truncate(name, leader_end)
            offset = leader_end
        else:
            leader_start = self._end_point.earliest_offset(name, epoch)
            offset = max(leader_start, log.log_end_offset)
            if leader_start > log.log_end_offset:
                _log.warning("log_begun_anew", partition=str(name), ours=log.log_end_offset, leaders=leader_start)
                self._truncate_fully(name, leader_start)
        return attrs.evolve(
            state,
            fetch_offset=offset,
            lag=max(0, leader_end - offset),
            state=ReplicaState.FETCHING,
            last_fetched_epoch=self._log_of(name).latest_epoch,
        )

    def _fail_fenced(self, name: TopicPartition, state: PartitionFetchState) -> None:
        """Remove the partition: the leader has a later epoch, which only new metadata provides."""
        epoch = state.current_leader_epoch
        self._fail(name, "fetch", FencedLeaderEpochError(f"the leader has a later epoch than {epoch}"))

    def _truncate_by(self, name: TopicPartition, answer: EpochEndOffset | None) -> None:
        """Truncate by the leader's answer about the end of the local log's latest epoch.

        Without an answer, because the log has no epochs, truncate to the fetch offset, which is the high watermark.
        """
        state = self._states[name]
        if answer is not None and answer.error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail_fenced(name, state)
            return
        if answer is not None and answer.error is not ErrorCode.NONE:
            self._delay([name])
            return
        offset, completed = state.fetch_offset, True
        try:
            if answer is not None:
                offset, completed = truncation_offset(self._log_of(name), answer.end, offset)
            self._truncate(name, offset)
        except Exception as error:  # an error of one partition must not stop the others
            self._fail(name, "truncate", error)
            return
        # not completed: the epoch before may diverge too. The next fetch shows it, or the leader is asked again
        fetching = completed or self._end_point.is_truncation_on_fetch_supported
        self._states[name] = attrs.evolve(
            state,
            fetch_offset=offset,
            state=ReplicaState.FETCHING if fetching else ReplicaState.TRUNCATING,
            last_fetched_epoch=self._latest_epoch(name),
        )

    def _truncate(self, name: TopicPartition, offset: int) -> None:
        truncate_to(self._manager.partition_or_raise(name), offset, is_future=self.into_future_logs)
        if not self.into_future_logs:
            self._manager.mark_future_for_truncation(name, offset)

    def _truncate_fully(self, name: TopicPartition, offset: int) -> None:
        truncate_fully_and_start_at(self._manager.partition_or_raise(name), offset, is_future=self.into_future_logs)

    def _fail(self, name: TopicPartition, what: str, error: Exception) -> None:
        level = _log.warning if isinstance(error, KafkaStorageError | FencedLeaderEpochError) else _log.error
        level("partition_failed", fetcher=self.name, partition=str(name), what=what, error=str(error))
        self._states.pop(name, None)
        manager = self._manager
        fetchers = manager.log_dir_fetchers if self.into_future_logs else manager.replica_fetchers
        fetchers.add_failed_partition(name)

    def _is_held_back(self, name: TopicPartition, state: PartitionFetchState) -> bool:
        """Whether the quota delays the partition: never an in-sync one, so that a quota shrinks no ISR."""
        return not state.is_in_sync and self._quota.is_throttled(name) and self._quota.is_exceeded()
