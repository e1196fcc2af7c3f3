"""Where replicas lie, on its way to the controller (KIP-858): AssignReplicasToDirs.

Source: org.apache.kafka.server.AssignmentsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Final, Protocol

import attrs

from kraftlake.delta import TopicIdPartition
from kraftlake.image import MetadataImage
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ErrorCode, error_of
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

MOST_IN_A_REQUEST: Final = 2_250
FIRST_BACKOFF_MS: Final = 100
LONGEST_BACKOFF_MS: Final = 10_000


@attrs.frozen(eq=False)
class _Assignment:
    """A directory, and who is told when the controller has noted it."""

    directory_id: Uuid
    on_accepted: Callable[[], None] | None


@attrs.frozen(kw_only=True)
class AssignReplicasRequest:
    """The directory of each replica."""

    broker_id: int
    broker_epoch: int
    directories: Mapping[TopicIdPartition, Uuid]


@attrs.frozen(kw_only=True)
class AssignReplicasResponse:
    """The controller's answer: an error for the whole, or what became of each replica, NONE where it was noted.

    A replica that `results` does not name is sent again.
    """

    error: ErrorCode = ErrorCode.NONE
    results: Mapping[TopicIdPartition, ErrorCode] = attrs.field(factory=dict)


class DirectoriesChannel(Protocol):
    """Reaches the active controller."""

    def assign_replicas_to_dirs(
        self, request: AssignReplicasRequest, on_answer: Callable[[AssignReplicasResponse], None]
    ) -> None:
        """Send; `on_answer` is called once, with NETWORK_EXCEPTION where nobody could be reached in time."""


class AssignmentsManager:
    """A `DirectoryEventHandler` with one request on its way at most; of a replica, the last directory counts.

    `schedule` is called with a delay in ms and what to do then: assignments gather for FIRST_BACKOFF_MS before they are
    sent, at once where there are more than a request holds. An error for the whole request doubles the delay of the
    next one, up to LONGEST_BACKOFF_MS, but not of one that was scheduled before the error came; replicas with an error
    of their own are sent again with the next request, behind the others. What is no longer valid in the newest
    `image`, for the topic is deleted or the broker has no replica any more, is dropped. Callbacks are called without a
    lock; what one raises is logged. `on_failure` is told of failed directories: the next heartbeat has them.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        image: Callable[[], MetadataImage],
        channel: DirectoriesChannel,
        *,
        schedule: Callable[[float, Callable[[], None]], None],
        on_failure: Callable[[Uuid], None],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._image = image
        self._channel = channel
        self._schedule = schedule
        self._on_failure = on_failure
        self._lock = RLock()
        self._ready: dict[TopicIdPartition, _Assignment] = {}
        self._inflight: dict[TopicIdPartition, _Assignment] = {}
        self._scheduled_delay_ms: int | None = None
        """The shortest delay with which the next turn was scheduled, None where it was not."""
        self._turn = 0
        """How often a scheduled turn has come; those that were scheduled before are void."""
        self._failures = 0
        """Requests in a row that had an error for the whole."""

    @property
    def waiting(self) -> int:
        """How many replicas the controller has not been told of yet (QueuedReplicaToDirAssignments)."""
        with self._lock:
            return len(self._ready) + len(self._inflight)

    def handle_failure(self, directory_id: Uuid) -> None:
        """A directory has failed."""
        self._on_failure(directory_id)

    def handle_assignment(
        self,
        partition: TopicIdPartition,
        directory_id: Uuid,
        reason: str,
        on_accepted: Callable[[], None] | None = None,
    ) -> None:
        """A replica lies in that directory, or will when the controller has noted it."""
        _log.debug("replica_assigned", partition=str(partition), directory=str(directory_id), reason=reason)
        with self._lock:
            self._ready[partition] = _Assignment(directory_id, on_accepted)
        self._send_later()

    def _send_later(self) -> None:
        """Schedule the next request; the earliest of all times that were asked for since the last one counts."""
        with self._lock:
            if self._failures:
                delay_ms = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** min(self._failures, 20))
            else:
                is_full = not self._inflight and len(self._ready) > MOST_IN_A_REQUEST
                delay_ms = 0 if is_full else FIRST_BACKOFF_MS
            if self._scheduled_delay_ms is not None and self._scheduled_delay_ms <= delay_ms:
                return  # that one was scheduled before, and is due before
            self._scheduled_delay_ms = delay_ms
            turn = self._turn
        self._schedule(delay_ms, lambda: self._send(turn))

    def _send(self, turn: int) -> None:
        with self._lock:
            if turn != self._turn:
                return  # another one was due before
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
                return  # another answer has come before
            self._inflight = {}
            failed = response.error is not ErrorCode.NONE
            self._failures = self._failures + 1 if failed else 0
            for partition, assignment in sent.items():
                if not failed and response.results.get(partition) is ErrorCode.NONE:
                    # told even where another directory waits: what the controller knew for a while was so
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
