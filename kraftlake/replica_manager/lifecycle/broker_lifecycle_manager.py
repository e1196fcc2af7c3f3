"""Drives a broker's lifecycle in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Condition
from typing import Protocol

from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.lifecycle.broker_lifecycle import (
    BrokerLifecycle,
    LifecycleRequest,
    LifecycleResponse,
    LifecycleState,
)
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue, raise_unless_closed
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


class LifecycleChannel(Protocol):
    """A channel to the active controller, which finds the controller and retries."""

    def send(self, request: LifecycleRequest, on_answer: Callable[[LifecycleResponse | None], None]) -> None:
        """Send; calls `on_answer` once, with None when no controller has answered in time."""


class BrokerLifecycleManager:
    """Registers the broker and sends its heartbeats, from `start` to `close`; any thread may call any method.

    Source: org.apache.kafka.server.BrokerLifecycleManager.
    """

    def __init__(self, lifecycle: BrokerLifecycle, channel: LifecycleChannel, clock: Clock) -> None:
        self._lifecycle = lifecycle
        self._channel = channel
        self._clock = clock
        self._changed = Condition()
        self._queue = KafkaEventQueue(clock, "lifecycle-manager")

    @property
    def state(self) -> LifecycleState:
        """The state of the broker."""
        return self._lifecycle.state

    @property
    def broker_epoch(self) -> int:
        """The epoch of the registration, −1 before the first."""
        return self._lifecycle.broker_epoch

    @property
    def got_shutdown_answer(self) -> bool:
        """Whether a controller has answered a request for a controlled shutdown."""
        return self._lifecycle.got_shutdown_answer

    @property
    def fault(self) -> str | None:
        """The reason for which the broker shuts down without a request to stop."""
        return self._lifecycle.fault

    def start(self) -> None:
        """Begin to register."""
        self._change(self._lifecycle.start)

    def set_ready_to_unfence(self) -> None:
        """Request unfencing from now on: the broker can serve."""
        self._change(self._lifecycle.set_ready_to_unfence)

    def directory_failed(self, directory: Uuid) -> None:
        """Report a log directory as offline to the controller."""
        self._change(lambda now_ns: self._lifecycle.directory_failed(directory, now_ns))

    def cordon(self, directories: Sequence[Uuid]) -> None:
        """Report to the controller the log directories that get no new replicas from now on."""
        self._change(lambda now_ns: self._lifecycle.cordon(directories, now_ns))

    def resend_registration(self) -> None:
        """Register again, for another broker epoch."""
        self._change(self._lifecycle.resend_registration)

    def begin_controlled_shutdown(self) -> None:
        """Request a controlled shutdown if the broker runs; otherwise shut down at once."""
        self._change(self._lifecycle.begin_controlled_shutdown)

    def await_state(self, state: LifecycleState, timeout_s: float | None = None) -> LifecycleState:
        """Wait until the broker is in `state` or a later one; returns its current state."""
        with self._changed:
            self._changed.wait_for(lambda: self.state >= state, timeout_s)
            return self.state

    def close(self) -> None:
        """Shut down without the controller's permission; returns when the thread has ended."""
        self._change(lambda _: self._lifecycle.begin_shutdown())
        self._queue.close()

    def _change(self, change: Callable[[int], None]) -> None:
        """Change the lifecycle on the thread, and send the requests that are then due."""
        self._queue.append(FunctionEvent(lambda: self._step(change), raise_unless_closed))

    def _step(self, change: Callable[[int], None]) -> None:
        before, now_ns = self.state, self._clock.nanoseconds()
        change(now_ns)
        request = self._lifecycle.next_request(now_ns)
        if request is not None:
            self._channel.send(request, self._answered)
        if (due_ns := self._lifecycle.due_ns) is not None:
            event = FunctionEvent(lambda: self._step(lambda _: None), raise_unless_closed)
            self._queue.schedule_deferred("communication", due_ns, event)
        if self.state is not before:
            _log.info("broker_state_changed", state=self.state.name, epoch=self.broker_epoch, fault=self.fault)
            with self._changed:
                self._changed.notify_all()

    def _answered(self, response: LifecycleResponse | None) -> None:
        self._change(lambda now_ns: self._lifecycle.answered(response, now_ns))
