"""Reports the log directories of replicas to the controller (AssignReplicasToDirs, KIP-858).

Source: org.apache.kafka.server.AssignmentsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Final, Protocol

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import error_of
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

MOST_IN_A_REQUEST: Final = 2_250
FIRST_BACKOFF_MS: Final = 100
LONGEST_BACKOFF_MS: Final = 10_000


@attrs.frozen(eq=False)
class _Assignment:
    """A log directory, and the callback for the controller's acceptance."""

    directory_id: Uuid
    on_accepted: Callable[[], None] | None


@attrs.frozen(kw_only=True)
class AssignReplicasRequest:
    """The log directory id of each replica."""

    broker_id: int
    broker_epoch: int
    directories: Mapping[TopicIdPartition, Uuid]


@attrs.frozen(kw_only=True)
class AssignReplicasResponse:
    """The controller's answer: an error for the whole request, or the error code of each replica.

    A replica without a result is sent again.
    """

    error: ErrorCode = ErrorCode.NONE
    results: Mapping[TopicIdPartition, ErrorCode] = attrs.field(factory=dict)


class DirectoriesChannel(Protocol):
    """A channel to the active controller, which finds the controller and retries."""

    def assign_replicas_to_dirs(
        self, request: AssignReplicasRequest, on_answer: Callable[[AssignReplicasResponse], None]
    ) -> None:
        """Send; calls `on_answer` once, with NETWORK_EXCEPTION when no controller has answered in time."""


@attrs.define(eq=False, repr=False)
class AssignmentsManager:
    """A `DirectoryEventHandler` with at most one request in flight; the last directory of a replica counts.

    `schedule` takes a delay in ms and an action. Assignments are sent FIRST_BACKOFF_MS after the first of them, at once
    where they exceed one request. Each error for a whole request doubles the delay, up to LONGEST_BACKOFF_MS, but not
    the delay of a request that was scheduled before the error; a replica with an error of its own is sent again with
    the next request, after the others. An assignment that the newest `image` makes pointless, because the topic is
    deleted or the broker has no replica, is dropped. Callbacks are called without a lock; their exceptions are logged.
    `on_failure` receives the ids of failed directories, which the next heartbeat reports.
    """

    _broker_id: int
    _broker_epoch: Callable[[], int]
    _image: Callable[[], MetadataImage]
    _channel: DirectoriesChannel
    _schedule: Callable[[float, Callable[[], None]], None] = attrs.field(kw_only=True)
    _on_failure: Callable[[Uuid], None] = attrs.field(kw_only=True)
    _lock: RLock = attrs.field(factory=RLock, init=False)
    _ready: dict[TopicIdPartition, _Assignment] = attrs.field(factory=dict, init=False)
    _inflight: dict[TopicIdPartition, _Assignment] = attrs.field(factory=dict, init=False)
    _scheduled_delay_ms: int | None = attrs.field(default=None, init=False)
    """The shortest delay with which the next request is scheduled, None without one."""
    _turn: int = attrs.field(default=0, init=False)
    """The number of scheduled actions that have run; an action that was scheduled for an earlier turn does nothing."""
    _failures: int = attrs.field(default=0, init=False)
    """The number of consecutive requests with an error for the whole."""

    @property
    def waiting(self) -> int:
        """The number of replicas whose directory the controller has not accepted (QueuedReplicaToDirAssignments)."""
        with self._lock:
            return len(self._ready) + len(self._inflight)

    def handle_failure(self, directory_id: Uuid) -> None:
        """Report a failed directory."""
        self._on_failure(directory_id)

    def handle_assignment(
        self,
        partition: TopicIdPartition,
        directory_id: Uuid,
        reason: str,
        on_accepted: Callable[[], None] | None = None,
    ) -> None:
        """Report the directory of a replica, or the one it moves to once the controller has accepted it."""
        _log.debug("replica_assigned", partition=str(partition), directory=str(directory_id), reason=reason)
        with self._lock:
            self._ready[partition] = _Assignment(directory_id, on_accepted)
        self._send_later()

    def _send_later(self) -> None:
        """Schedule the next request; of several schedules, the earliest counts."""
        with self._lock:
            if self._failures:
                delay_ms = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** min(self._failures, 20))
            else:
                is_full = not self._inflight and len(self._ready) > MOST_IN_A_REQUEST
                delay_ms = 0 if is_full else FIRST_BACKOFF_MS
            if self._scheduled_delay_ms is not None and self._scheduled_delay_ms <= delay_ms:
                return  # the scheduled request is due earlier
            self._scheduled_delay_ms = delay_ms
            turn = self._turn
        self._schedule(delay_ms, lambda: self._send(turn))

    def _send(self, turn: int) -> None:
        with self._lock:
            if turn != self._turn:
                return  # an action of an earlier time has run
            self._turn += 1
            self._scheduled_delay_ms = None
            if self._inflight:
                return
            image = self._image()
            sent: dict[TopicIdPartition, _Assignment] = {}
            dropped = 0
            for partition in list(self._ready):
                if len(sent) == MOST_IN_A_REQUEST:
                    break
                assignment = self._ready.pop(partition)
                if self._is_valid(partition, image):
                    sent[partition] = assignment
                else:
                    dropped += 1
            self._inflight = sent
        if dropped:
            _log.info("assignments_dropped", replicas=dropped)
        if not sent:
            return
        try:
            request = AssignReplicasRequest(
                broker_id=self._broker_id,
                broker_epoch=self._broker_epoch(),
                directories={partition: assignment.directory_id for partition, assignment in sent.items()},
            )
            self._channel.assign_replicas_to_dirs(request, lambda response: self._answered(sent, response))
        except Exception as fault:
            self._answered(sent, AssignReplicasResponse(error=error_of(fault)))

    def _is_valid(self, partition: TopicIdPartition, image: MetadataImage) -> bool:
        registration = image.topics.get_partition(partition.topic_id, partition.topic_partition.partition)
        return registration is not None and self._broker_id in registration.replicas

    def _answered(self, sent: Mapping[TopicIdPartition, _Assignment], response: AssignReplicasResponse) -> None:
        accepted: dict[TopicIdPartition, _Assignment] = {}
        with self._lock:
            if self._inflight is not sent:
                return  # a second answer to the same request
            self._inflight = {}
            failed = response.error is not ErrorCode.NONE
            self._failures = self._failures + 1 if failed else 0
            for partition, assignment in sent.items():
                if not failed and response.results.get(partition) is ErrorCode.NONE:
                    # called even where a newer directory waits: the controller has accepted this one for a while
                    accepted[partition] = assignment
                else:
                    self._ready.setdefault(partition, assignment)
        if len(accepted) < len(sent):
            _log.warning("assignments_not_taken", error=response.error.name, replicas=len(sent) - len(accepted))
        for partition, assignment in accepted.items():
            if assignment.on_accepted is not None:
                try:
                    assignment.on_accepted()
                except Exception as fault:
                    _log.error(
                        "assignment_callback_failed", partition=str(partition), cause=f"{type(fault).__name__}: {fault}"
                    )
        if self._ready:
            self._send_later()
