"""Sends the requests of a broker to the active controller.

Source: kafka.server.NodeToControllerChannelManagerImpl, NodeToControllerRequestThread.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, Final, TypeVar

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.replica_manager.alter_partition_manager import AlterPartitionRequest, AlterPartitionResponse
from kraftlake.replica_manager.assignments_manager import AssignReplicasRequest, AssignReplicasResponse
from kraftlake.replica_manager.controller_requests import (
    alter_partition,
    assign_replicas_to_dirs,
    register_broker,
    send_heartbeat,
)
from kraftlake.replica_manager.lifecycle.broker_lifecycle import LifecycleRequest, LifecycleResponse
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue, raise_unless_closed
from kraftlake.runtime.log import get_logger

R = TypeVar("R")
_log = get_logger(__name__)
_BACKOFF: Final = Backoff(base=0.05, cap=1.0)
_LOGGED_FROM: Final = 8
"""The first failed attempt that is logged, after about three seconds, in which a controller may start or take over."""


class NodeToControllerChannel:
    """A channel with its own connection and thread; it sends its requests one at a time, in order.

    `addresses` are the controllers' addresses, or a function for them; the active controller is found through them.
    `active` returns the active controller from another source, and is called before each attempt, so that no attempt
    waits for a replaced controller. A request is sent again, after a pause with jitter, until a controller has answered
    it or `retry_timeout_ms` have passed since it was given to the channel (None: without limit); each attempt may take
    `request_timeout_ms` (`controller.socket.timeout.ms`). A controller that refuses the broker's certificate or login
    ends the request at once, like a timeout, and is logged. After `close` no callback is called. Kafka's broker has
    three channels: for its lifecycle, for ISRs, and for directories.
    """

    def __init__(
        self,
        name: str,
        addresses: Sequence[Address] | Callable[[], Sequence[Address]],
        connect: NodeConnector,
        *,
        active: Callable[[], Address | None] = lambda: None,
        cluster_id: str | None = None,
        retry_timeout_ms: int | None = None,
        request_timeout_ms: int = 30_000,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._name = name
        self._abort = Abort()
        self._quorum = QuorumObserver(
            addresses, connect=lambda address: connect(address, abort=self._abort), cluster_id=cluster_id
        )
        self._active = active
        self._retry_timeout_ns = None if retry_timeout_ms is None else retry_timeout_ms * 1_000_000
        self._request_timeout_s = request_timeout_ms / 1000
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._closing = Event()
        self._refusal: str | None = None
        """The last refusal of the certificate or the login, which is logged once."""
        self._queue = KafkaEventQueue(self._clock, f"to-controller-{name}", cleanup=self._quorum.close)

    def send(self, request: LifecycleRequest, on_answer: Callable[[LifecycleResponse | None], None]) -> None:
        """Register, or send a heartbeat; calls `on_answer` once, with None if no controller has answered in time."""

        def ask(timeout: float) -> LifecycleResponse:
            if isinstance(request, BrokerRegistrationRequest):
                return register_broker(self._quorum, request, timeout=timeout)
            return send_heartbeat(self._quorum, request, timeout=timeout)

        self._enqueue(ask, on_answer)

    def alter_partition(
        self, request: AlterPartitionRequest, on_answer: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Propose ISRs; calls `on_answer` once, with NETWORK_EXCEPTION when no controller has answered in time."""
        self._enqueue(
            lambda timeout: alter_partition(self._quorum, request, timeout=timeout),
            lambda response: on_answer(response or AlterPartitionResponse(error=ErrorCode.NETWORK_EXCEPTION)),
        )

    def assign_replicas_to_dirs(
        self, request: AssignReplicasRequest, on_answer: Callable[[AssignReplicasResponse], None]
    ) -> None:
        """Report directories; answers as `alter_partition`."""
        self._enqueue(
            lambda timeout: assign_replicas_to_dirs(self._quorum, request, timeout=timeout),
            lambda response: on_answer(response or AssignReplicasResponse(error=ErrorCode.NETWORK_EXCEPTION)),
        )

    def ask(
        self, name: str, versions: range, make: Callable[[Any], Any], on_answer: Callable[[Any | None], None]
    ) -> None:
        """Send a request of the API `name`; see `QuorumObserver.ask_controller`. Answers as `send`."""
        self._enqueue(lambda timeout: self._quorum.ask_controller(name, versions, make, timeout=timeout), on_answer)

    def close(self) -> None:
        """End the request in flight and drop all others; returns when the thread has ended."""
        self._closing.set()
        self._abort.set()
        self._queue.close()

    def _enqueue(self, ask: Callable[[float], R], on_answer: Callable[[R | None], None]) -> None:
        deadline_ns = None if self._retry_timeout_ns is None else self._clock.nanoseconds() + self._retry_timeout_ns

        def run() -> None:
            answer = self._answer(ask, deadline_ns)
            if not self._closing.is_set():
                on_answer(answer)

        self._queue.append(FunctionEvent(run, raise_unless_closed))

    def _answer(self, ask: Callable[[float], R], deadline_ns: int | None) -> R | None:
        """Return the answer of the active controller; None after the timeout, and while the channel is being closed."""
        failures = 0
        while not self._closing.is_set():
            left_s = self._request_timeout_s
            if deadline_ns is not None:
                left_s = min(left_s, (deadline_ns - self._clock.nanoseconds()) / 1e9)
            if left_s <= 0:
                return None
            try:
                active = self._active()
                if active is not None:
                    self._quorum.look_at(active)
                answer = ask(left_s)
                self._refusal = None
                return answer
            except NodeError as fault:
                failures += 1
                is_logged = failures >= _LOGGED_FROM and failures & (failures - 1) == 0  # ever more rarely
                if is_logged and not self._closing.is_set():
                    _log.warning("controller_not_reached", channel=self._name, failures=failures, cause=str(fault))
                if isinstance(fault, AuthenticationError):
                    if str(fault) != self._refusal and not self._closing.is_set():
                        _log.warning("controller_refuses_this_node", channel=self._name, cause=str(fault))
                    self._refusal = str(fault)
                    return None
            except Exception as fault:  # an answer that can't be, a controller of another cluster: a later one may do
                _log.error("request_failed", channel=self._name, cause=f"{type(fault).__name__}: {fault}")
                return None
            self._closing.wait(min(_BACKOFF.pause(failures, self._jitter()), left_s))
        return None
