"""One thread for everything that a part does: events run one after the other, at once or at their time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_order import (
    Deadline,
    Event,
    EventOrder,
    EventQueueClosedError,
    EventTimeoutError,
    Place,
    Turn,
    earliest,
    latest,
)
from kraftlake.runtime.log import get_logger

__all__ = [
    "Deadline",
    "Event",
    "EventQueue",
    "EventQueueClosedError",
    "EventTimeoutError",
    "FunctionEvent",
    "KafkaEventQueue",
    "earliest",
    "latest",
]


@attrs.frozen
class FunctionEvent:
    """An event made of functions; without `on_error` a fault is logged by the queue."""

    function: Callable[[], None]
    on_error: Callable[[Exception], None] | None = None

    def run(self) -> None:
        """Call the function."""
        self.function()

    def handle_exception(self, error: Exception) -> None:
        """Hand the fault on; raises it where nobody is to be told."""
        if self.on_error is None:
            raise error
        self.on_error(error)


class EventQueue:
    """Events that run one at a time, in the order of `EventOrder`, whenever `run_ready` is called.

    Any thread may add events. An event that is refused (QueueFullError, EventQueueClosedError) is told so in
    `handle_exception` on the thread that adds it, and the call gives False.
    """

    def __init__(self, clock: Clock, name: str, *, limit: int | None = None) -> None:
        self.clock = clock
        self.name = name
        self._order = EventOrder(limit)
        self._changed = threading.Condition()
        self._log = get_logger().bind(event_queue=name)

    @property
    def size(self) -> int:
        """How many events wait."""
        with self._changed:
            return len(self._order)

    @property
    def shutting_down(self) -> bool:
        """Whether nothing is taken any more."""
        return self._order.shutting_down

    def append(self, event: Event, *, tag: str | None = None, deadline_ns: Deadline | None = None) -> bool:
        """Run `event` after what waits; by `deadline_ns` or not at all."""
        return self._add(event, Place.APPEND, tag, deadline_ns)

    def prepend(self, event: Event, *, tag: str | None = None, deadline_ns: Deadline | None = None) -> bool:
        """Run `event` before what waits; by `deadline_ns` or not at all."""
        return self._add(event, Place.PREPEND, tag, deadline_ns)

    def schedule_deferred(self, tag: str, deadline_ns: Deadline, event: Event) -> bool:
        """Run `event` when the clock reads `deadline_ns`, in place of the one that waits under the same tag."""
        return self._add(event, Place.DEFERRED, tag, deadline_ns)

    def cancel_deferred(self, tag: str) -> bool:
        """Drop the event of that tag; gives whether there was one."""
        with self._changed:
            return self._order.cancel(tag)

    def run_ready(self) -> int:
        """Run on this thread what can run now, and what that adds, until nothing is ready; gives how many ran."""
        ran = 0
        while (turn := self._next_turn()) is not None:
            self._run(turn)
            ran += 1
        return ran

    def wake_up(self) -> None:
        """Look at the clock again: for clocks that are turned by hand."""
        with self._changed:
            self._changed.notify_all()

    def begin_shutdown(self) -> None:
        """Take no more events; returns at once."""
        with self._changed:
            self._order.begin_shutdown()
            self._changed.notify_all()

    def close(self) -> None:
        """Take no more events, and return when those that waited have run or were told why not."""
        self.begin_shutdown()
        self.run_ready()

    def _add(self, event: Event, place: Place, tag: str | None, deadline: Deadline | None) -> bool:
        with self._changed:
            refusal = self._order.add(event, place, tag=tag, deadline=deadline)
            if refusal is None:
                self._changed.notify_all()
        if refusal is not None:
            self._tell(event, refusal)
        return refusal is None

    def _next_turn(self) -> Turn | None:
        with self._changed:
            return self._order.next_turn(self.clock.nanoseconds())

    def _run(self, turn: Turn) -> None:
        error = turn.error
        if error is None:
            try:
                turn.event.run()
            except Exception as fault:  # whatever it is, the event's owner is told
                error = fault
        if error is not None:
            self._tell(turn.event, error)

    def _tell(self, event: Event, error: Exception) -> None:
        try:
            event.handle_exception(error)
        except Exception as fault:  # the queue outlives every event
            self._log.error("event failed", event_=repr(event), cause=f"{type(fault).__name__}: {fault}")


class KafkaEventQueue(EventQueue):
    """An event queue with a thread of its own, which runs `cleanup` last of all.

    `on_idle` is told, on that thread, how many ns it has waited for an event, and when that ended. It holds the queue's
    lock, so it must not wait. Source: org.apache.kafka.queue.KafkaEventQueue.
    """

    def __init__(
        self,
        clock: Clock,
        name: str,
        *,
        limit: int | None = None,
        cleanup: Callable[[], None] | None = None,
        on_idle: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(clock, name, limit=limit)
        self._cleanup = cleanup
        self._on_idle = on_idle
        self._thread = threading.Thread(target=self._handle_events, name=f"{name}-event-handler", daemon=True)
        self._thread.start()

    @property
    def on_own_thread(self) -> bool:
        """Whether the caller is an event of this queue."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Take no more events, and return when the thread has ended.

        An event of the queue itself must not wait for it: there this is `begin_shutdown`.
        """
        self.begin_shutdown()
        if not self.on_own_thread:
            self._thread.join()

    def _handle_events(self) -> None:
        while (turn := self._wait_for_turn()) is not None:
            self._run(turn)
        if self._cleanup is not None:
            self._run(Turn(FunctionEvent(self._cleanup), None))

    def _wait_for_turn(self) -> Turn | None:
        """The next event; None when there will be none."""
        with self._changed:
            while True:
                turn = self._order.next_turn(self.clock.nanoseconds())
                if turn is not None or self._order.shutting_down:
                    return turn
                began_ns = self.clock.nanoseconds()
                wait_ns = self._order.wait_ns(began_ns)
                self._changed.wait(None if wait_ns is None else min(wait_ns / 1e9, threading.TIMEOUT_MAX))
                if self._on_idle is not None:
                    ended_ns = self.clock.nanoseconds()
                    self._on_idle(ended_ns - began_ns, ended_ns)
