"""Events that one thread runs one after the other, at once or at their deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_order import Deadline, Event, EventOrder, EventQueueClosedError, Turn
from kraftlake.runtime.log import get_logger


@attrs.frozen
class FunctionEvent:
    """An event made of functions; without `on_error` the queue logs a fault."""

    function: Callable[[], None]
    on_error: Callable[[Exception], None] | None = None

    def run(self) -> None:
        """Call the function."""
        self.function()

    def handle_exception(self, error: Exception) -> None:
        """Pass the fault to `on_error`, or raise it without one."""
        if self.on_error is None:
            raise error
        self.on_error(error)


def raise_unless_closed(error: Exception) -> None:
    """Ignore the end of the queue, and raise any other error: the `on_error` of events that may come after the end."""
    if not isinstance(error, EventQueueClosedError):
        raise error


class EventQueue:
    """Events that run one at a time, in the order of `EventOrder`, when `run_ready` is called.

    Any thread may add events. The methods that add one return whether it was accepted; a refused event gets the reason
    (QueueFullError, EventQueueClosedError) by `handle_exception`, on the thread that adds it.
    """

    def __init__(self, clock: Clock, name: str, *, limit: int | None = None) -> None:
        self.clock = clock
        self.name = name
        self._order = EventOrder(limit)
        self._changed = threading.Condition()
        self._log = get_logger().bind(event_queue=name)

    @property
    def size(self) -> int:
        """The number of waiting events."""
        with self._changed:
            return len(self._order)

    @property
    def shutting_down(self) -> bool:
        """Whether new events are refused."""
        return self._order.shutting_down

    def append(self, event: Event, *, deadline_ns: int | None = None) -> bool:
        """Run `event` after the waiting ones; if its turn does not come by `deadline_ns`, it times out."""
        return self._add(event, lambda: self._order.append(event, deadline_ns))

    def prepend(self, event: Event) -> bool:
        """Run `event` before the waiting ones."""
        return self._add(event, lambda: self._order.prepend(event))

    def schedule_deferred(self, tag: str, deadline_ns: Deadline, event: Event) -> bool:
        """Run `event` when the clock reads `deadline_ns`, in place of the tag's waiting event."""
        return self._add(event, lambda: self._order.defer(event, tag, deadline_ns))

    def cancel_deferred(self, tag: str) -> bool:
        """Remove the waiting event of a tag; returns whether one existed."""
        with self._changed:
            return self._order.cancel(tag)

    def run_ready(self) -> int:
        """Run all ready events on this thread, including those that they add; returns the number of events."""
        ran = 0
        while (turn := self._next_turn()) is not None:
            self._run(turn)
            ran += 1
        return ran

    def wake_up(self) -> None:
        """Read the clock again: for clocks that are advanced by hand."""
        with self._changed:
            self._changed.notify_all()

    def begin_shutdown(self) -> None:
        """Refuse new events; returns at once."""
        with self._changed:
            self._order.begin_shutdown()
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse new events, and return when each waiting event has run or has received its error."""
        self.begin_shutdown()
        self.run_ready()

    def _add(self, event: Event, add: Callable[[], Exception | None]) -> bool:
        with self._changed:
            refusal = add()
            self._changed.notify_all()
        if refusal is not None:
            self._deliver_error(event, refusal)
        return refusal is None

    def _next_turn(self) -> Turn | None:
        with self._changed:
            return self._order.next_turn(self.clock.nanoseconds())

    def _run(self, turn: Turn) -> None:
        error = turn.error
        if error is None:
            try:
                turn.event.run()
            except Exception as fault:  # every fault goes to the event's owner
                error = fault
        if error is not None:
            self._deliver_error(turn.event, error)

    def _deliver_error(self, event: Event, error: Exception) -> None:
        try:
            event.handle_exception(error)
        except Exception as fault:  # the queue outlives every event
            self._log.error("event_failed", event_=repr(event), cause=f"{type(fault).__name__}: {fault}")


class KafkaEventQueue(EventQueue):
    """An event queue with its own thread, which runs `cleanup` at its end.

    `on_idle` is called on that thread with the duration of its wait for an event and the clock's time at the end of the
    wait, in ns. The caller holds the queue's lock, so it must not block. Source:
    org.apache.kafka.queue.KafkaEventQueue.
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

    def close(self) -> None:
        """Refuse new events, and return when the thread has ended.

        On the queue's own thread this is `begin_shutdown`: an event can't wait for its own end.
        """
        self.begin_shutdown()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _handle_events(self) -> None:
        while (turn := self._wait_for_turn()) is not None:
            self._run(turn)
        if self._cleanup is not None:
            self._run(Turn(FunctionEvent(self._cleanup), None))

    def _wait_for_turn(self) -> Turn | None:
        """Return the next event; None at the end of the queue."""
        with self._changed:
            while True:
                began_ns = self.clock.nanoseconds()
                turn = self._order.next_turn(began_ns)
                if turn is not None or self._order.shutting_down:
                    return turn
                wait_ns = self._order.wait_ns(began_ns)
                self._changed.wait(None if wait_ns is None else min(wait_ns / 1e9, threading.TIMEOUT_MAX))
                if self._on_idle is not None:
                    ended_ns = self.clock.nanoseconds()
                    self._on_idle(ended_ns - began_ns, ended_ns)
