"""The order of events and the wait for the next one: an event queue without a thread, a lock or a clock."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import attrs

from kraftlake.runtime.errors import KraftlakeError, QueueFullError


class EventQueueClosedError(KraftlakeError):
    """The event queue is shutting down: an event that has a deadline, or is added now, will not run."""


class EventTimeoutError(KraftlakeError):
    """An event has missed its deadline and will not run."""


class Event(Protocol):
    """An action that runs once. Source: org.apache.kafka.queue.EventQueue.Event."""

    def run(self) -> None:
        """Run the action; its exception goes to `handle_exception`."""
        ...

    def handle_exception(self, error: Exception) -> None:
        """Handle the exception of `run`, or the reason why it never ran: a full or closed queue, a missed deadline."""
        ...


Deadline = int | Callable[[int | None], int]
"""A reading of `Clock.nanoseconds`, or a function from the current deadline of the tag (None: none) to its next one."""


def earliest(deadline_ns: int) -> Callable[[int | None], int]:
    """Return a function that keeps the earlier deadline (EventQueue.EarliestDeadlineFunction)."""
    return lambda existing: deadline_ns if existing is None else min(existing, deadline_ns)


@attrs.define(eq=False)
class _Entry:
    event: Event
    number: int
    deadline_ns: int | None = None
    tag: str | None = None
    """The tag of a deferred event; None for others."""
    gone: bool = False


@attrs.frozen
class Turn:
    """The next event: to be run, or to get `error`."""

    event: Event
    error: Exception | None


class EventOrder:
    """The waiting events, and their order.

    Deferred events that are due come first, by deadline; then the prepended ones, the last one first; then the appended
    ones, in order. A tag has at most one deferred event: a later event with the same tag replaces it. An appended event
    that misses its deadline gets EventTimeoutError.

    An appended event is refused with QueueFullError while `limit` events wait for their turn. Events that are prepended
    or deferred come from the owner of the queue and are not refused; the number of tags bounds the deferred ones.

    After `begin_shutdown` every new event is refused; waiting events without a deadline still run, and those with a
    deadline get EventQueueClosedError. Source: org.apache.kafka.queue.KafkaEventQueue.
    """

    def __init__(self, limit: int | None = None) -> None:
        assert limit is None or limit > 0
        self._limit = limit
        self._queue: OrderedDict[int, _Entry] = OrderedDict()
        self._deferred: dict[str, _Entry] = {}
        self._deadlines: list[tuple[int, int, _Entry]] = []
        self._numbers = itertools.count()
        self.shutting_down = False
        """Whether new events are refused."""

    def __len__(self) -> int:
        """The number of waiting events."""
        return len(self._queue) + len(self._deferred)

    def append(self, event: Event, deadline_ns: int | None = None) -> Exception | None:
        """Add `event` after the waiting ones; returns the reason if it is refused."""
        if self._limit is not None and len(self._queue) >= self._limit and not self.shutting_down:
            return QueueFullError(f"{len(self._queue)} events wait already, and no more than {self._limit} may.")
        return self._add(event, deadline_ns)

    def prepend(self, event: Event) -> Exception | None:
        """Add `event` before the waiting ones; returns the reason if it is refused."""
        refusal = self._add(event)
        if refusal is None:
            self._queue.move_to_end(next(reversed(self._queue)), last=False)
        return refusal

    def defer(self, event: Event, tag: str, deadline: Deadline) -> Exception | None:
        """Add `event` to run at `deadline`, in place of the tag's event; returns the reason if it is refused."""
        replaced = self._deferred.get(tag)
        existing = None if replaced is None else replaced.deadline_ns
        return self._add(event, deadline(existing) if callable(deadline) else deadline, tag)

    def cancel(self, tag: str) -> bool:
        """Remove the deferred event of a tag, without notifying it; returns whether one existed."""
        entry = self._deferred.get(tag)
        if entry is not None:
            self._remove(entry)
        return entry is not None

    def next_turn(self, now_ns: int) -> Turn | None:
        """Remove and return the next event; None if none is ready (see `wait_ns`)."""
        timed = self._first_timed()
        if timed is not None:
            if timed.deadline_ns is not None and timed.deadline_ns <= now_ns:
                missed = EventTimeoutError("The event's deadline has passed.") if timed.tag is None else None
                return self._take(timed, missed)
            if self.shutting_down:
                return self._take(timed, EventQueueClosedError("The event queue is shutting down."))
        if self._queue:
            return self._take(next(iter(self._queue.values())), None)
        return None

    def wait_ns(self, now_ns: int) -> int | None:
        """The time until an event is ready; None if only a new event can become ready."""
        if self._queue:
            return 0
        timed = self._first_timed()
        return None if timed is None or timed.deadline_ns is None else max(0, timed.deadline_ns - now_ns)

    def begin_shutdown(self) -> None:
        """Refuse new events."""
        self.shutting_down = True

    def _add(self, event: Event, deadline_ns: int | None = None, tag: str | None = None) -> Exception | None:
        if self.shutting_down:
            return EventQueueClosedError("The event queue is shutting down.")
        entry = _Entry(event, next(self._numbers), deadline_ns, tag)
        if deadline_ns is not None:
            heapq.heappush(self._deadlines, (deadline_ns, entry.number, entry))
        if tag is None:
            self._queue[entry.number] = entry
        else:
            self.cancel(tag)
            self._deferred[tag] = entry
        return None

    def _take(self, entry: _Entry, error: Exception | None) -> Turn:
        self._remove(entry)
        return Turn(entry.event, error)

    def _remove(self, entry: _Entry) -> None:
        entry.gone = True
        if entry.tag is None:
            del self._queue[entry.number]
        else:
            del self._deferred[entry.tag]
        if len(self._deadlines) > 2 * len(self) + 16:
            self._deadlines = [item for item in self._deadlines if not item[2].gone]
            heapq.heapify(self._deadlines)

    def _first_timed(self) -> _Entry | None:
        while self._deadlines and self._deadlines[0][2].gone:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][2] if self._deadlines else None
