"""Where replicas lie, on its way to the controller (KIP-858): AssignReplicasToDirs.

Source: org.apache.kafka.server.AssignmentsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Final, Protocol, TypeAlias

import attrs

from kraftlake.delta import TopicIdPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ErrorCode
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

MOST_IN_A_REQUEST: Final = 2_250
FIRST_BACKOFF_MS: Final = 100
LONGEST_BACKOFF_MS: Final = 10_000

_Assignment: TypeAlias = tuple[Uuid, Callable[[], None] | None]
"""A directory, and who is to be told when the controller has noted it."""


@attrs.frozen(kw_only=True)
class AssignReplicasRequest:
    """The directory of each replica."""

    broker_id: int
    broker_epoch: int
    directories: Mapping[TopicIdPartition, Uuid]


@attrs.frozen(kw_only=True)
class AssignReplicasResponse:
    """The controller's answer: an error for the whole, or for single replicas; those not named are fine."""

    error: ErrorCode = ErrorCode.NONE
    errors: Mapping[TopicIdPartition, ErrorCode] = attrs.field(factory=dict)


class DirectoriesChannel(Protocol):
    """Reaches the active controller."""

    def assign_replicas_to_dirs(
        self, request: AssignReplicasRequest, on_answer: Callable[[AssignReplicasResponse], None]
    ) -> None:
        """Send; `on_answer` is called once, with NETWORK_EXCEPTION where nobody could be reached in time."""


class AssignmentsManager:
    """A `DirectoryEventHandler` with one request on its way at most; of a replica, the last directory counts.

    `schedule` is called with a delay in ms and what to do then; what fails is sent again after a while that doubles.
    `on_failure` is told of failed directories: the next heartbeat has them.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        channel: DirectoriesChannel,
        schedule: Callable[[float, Callable[[], None]], None],
        on_failure: Callable[[Uuid], None],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._schedule = schedule
        self._on_failure = on_failure
        self._lock = RLock()
        self._waiting: dict[TopicIdPartition, _Assignment] = {}
        self._inflight = False
        self._failures = 0

    @property
    def waiting(self) -> int:
        """How many replicas the controller has not been told of yet (QueuedReplicaToDirAssignments)."""
        return len(self._waiting)

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
            self._waiting[partition] = (directory_id, on_accepted)
            held_back = self._failures > 0
        if not held_back:
            self.send()

    def send(self) -> None:
        """Send what waits, unless a request is on its way."""
        with self._lock:
            if self._inflight or not self._waiting:
                return
            self._inflight = True
            sent = dict(list(self._waiting.items())[:MOST_IN_A_REQUEST])
        request = AssignReplicasRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories={partition: directory for partition, (directory, _) in sent.items()},
        )
        self._channel.assign_replicas_to_dirs(request, lambda response: self._answered(sent, response))

    def _answered(self, sent: Mapping[TopicIdPartition, _Assignment], response: AssignReplicasResponse) -> None:
        accepted: list[Callable[[], None] | None] = []
        with self._lock:
            self._inflight = False
            failed = response.error is not ErrorCode.NONE or bool(response.errors)
            if response.error is ErrorCode.NONE:
                for partition, assignment in sent.items():
                    if partition in response.errors:
                        continue
                    # told even where another directory waits: what the controller knew for a while was so
                    accepted.append(assignment[1])
                    if self._waiting.get(partition) is assignment:
                        del self._waiting[partition]
            self._failures = self._failures + 1 if failed else 0
            backoff = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** min(self._failures - 1, 20)) if failed else 0
        for on_accepted in accepted:
            if on_accepted is not None:
                on_accepted()
        if failed:
            _log.warning("assignments_not_taken", error=response.error.name, replicas=len(response.errors))
            self._schedule(backoff, self.send)
        else:
            self.send()
