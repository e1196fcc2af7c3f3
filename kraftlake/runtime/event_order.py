"""Which event is the next to run, and how long to wait for it: an event queue without a thread, a lock or a clock."""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import attrs

from kraftlake.runtime.errors import KraftlakeError, QueueFullError


class EventQueueClosedError(KraftlakeError):
    """The event queue is shutting down: what was waiting for its time, or came too late, will not run."""


class EventTimeoutError(KraftlakeError):
    """An event did not get its turn before its deadline, and will not run."""


class Event(Protocol):
    """Something to do once. Source: org.apache.kafka.queue.EventQueue.Event."""

    def run(self) -> None:
        """Do it; what is raised goes to `handle_exception`."""
        ...

    def handle_exception(self, error: Exception) -> None:
        """Take what `run` raised, or why it never ran: a full or closed queue, a missed deadline."""
        ...


Deadline = int | Callable[[int | None], int]
"""A reading of `Clock.nanoseconds`, or a function that makes one of the deadline that the tag has now (None: none)."""


def earliest(deadline_ns: int) -> Callable[[int | None], int]:
    """A deadline for a tag that may have one: the earlier stays (EventQueue.EarliestDeadlineFunction)."""
    return lambda existing: deadline_ns if existing is None else min(existing, deadline_ns)


def latest(deadline_ns: int) -> Callable[[int | None], int]:
    """A deadline for a tag that may have one: the later stays (EventQueue.LatestDeadlineFunction)."""
    return lambda existing: deadline_ns if existing is None else max(existing, deadline_ns)


class Place(Enum):
    """Where an event goes (EventQueue.EventInsertionType)."""

    APPEND = "append"
    PREPEND = "prepend"
    DEFERRED = "deferred"


@attrs.define(eq=False)
class _Entry:
    event: Event
    place: Place
    tag: str | None
    number: int
    deadline_ns: int | None = None
    gone: bool = False


@attrs.frozen
class Turn:
    """An event whose turn it is: to be run, or told `error`."""

    event: Event
    error: Exception | None


class EventOrder:
    """The events that wait, and their order.

    Deferred events that are due come first, by deadline; then what was prepended, the last one first; then what was
    appended, in order. A tag stands for at most one waiting event: another one with the same tag takes its place. An
    event with a deadline that it does not reach is told EventTimeoutError.

    At most `limit` appended events wait; a further one is refused with QueueFullError. What is prepended or deferred
    is the owner's own and not refused, its number being bounded by its tags.

    After `begin_shutdown` nothing is taken; what was appended or prepended without a deadline still runs, everything
    with a deadline is told EventQueueClosedError. Source: org.apache.kafka.queue.KafkaEventQueue.
    """

    def __init__(self, limit: int | None = None) -> None:
        assert limit is None or limit > 0
        self._limit = limit
        self._queue: OrderedDict[int, _Entry] = OrderedDict()
        self._appended = 0
        self._deadlines: list[tuple[int, int, _Entry]] = []
        self._timed = 0
        self._deferred = 0
        self._tags: dict[str, _Entry] = {}
        self._numbers = itertools.count()
        self.shutting_down = False
        """Whether nothing is taken any more."""

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._queue) + self._deferred

    def add(
        self, event: Event, place: Place, *, tag: str | None = None, deadline: Deadline | None = None
    ) -> Exception | None:
        """Let `event` wait; gives why not, where it is refused."""
        if self.shutting_down:
            return EventQueueClosedError("The event queue is shutting down.")
        replaced = None if tag is None else self._tags.get(tag)
        if place is Place.APPEND and self._limit is not None:
            room = self._limit + (replaced is not None and replaced.place is Place.APPEND)
            if self._appended >= room:
                return QueueFullError(f"{self._appended} events wait already, and no more than {self._limit} may.")
        existing = None
        if replaced is not None:
            existing = replaced.deadline_ns
            self._remove(replaced)
        entry = _Entry(event, place, tag, next(self._numbers))
        if tag is not None:
            self._tags[tag] = entry
        if deadline is not None:
            entry.deadline_ns = deadline(existing) if callable(deadline) else deadline
            heapq.heappush(self._deadlines, (entry.deadline_ns, entry.number, entry))
            self._timed += 1
        if place is not Place.DEFERRED:
            self._queue[entry.number] = entry
            self._appended += place is Place.APPEND
            if place is Place.PREPEND:
                self._queue.move_to_end(entry.number, last=False)
        else:
            assert deadline is not None, "a deferred event has a deadline"
            self._deferred += 1
        return None

    def cancel(self, tag: str) -> bool:
        """Drop the event of that tag, which is told nothing; gives whether there was one."""
        entry = self._tags.get(tag)
        if entry is not None:
            self._remove(entry)
        return entry is not None

    def next_turn(self, now_ns: int) -> Turn | None:
        """Take out the event whose turn it is; None where none is to run now (see `wait_ns`)."""
        timed = self._first_timed()
        if timed is not None:
            if timed.deadline_ns is not None and timed.deadline_ns <= now_ns:
                missed = timed.place is not Place.DEFERRED
                return self._take(timed, EventTimeoutError("The event's deadline has passed.") if missed else None)
            if self.shutting_down:
                return self._take(timed, EventQueueClosedError("The event queue is shutting down."))
        if self._queue:
            return self._take(next(iter(self._queue.values())), None)
        return None

    def wait_ns(self, now_ns: int) -> int | None:
        """How long until an event may have its turn; None where only a new event can bring one."""
        if self._queue:
            return 0
        timed = self._first_timed()
        return None if timed is None or timed.deadline_ns is None else max(0, timed.deadline_ns - now_ns)

    def begin_shutdown(self) -> None:
        """Take no more events."""
        self.shutting_down = True

    def _take(self, entry: _Entry, error: Exception | None) -> Turn:
        self._remove(entry)
        return Turn(entry.event, error)

    def _remove(self, entry: _Entry) -> None:
        assert not entry.gone
        entry.gone = True
        if entry.place is Place.DEFERRED:
            self._deferred -= 1
        else:
            del self._queue[entry.number]
            self._appended -= entry.place is Place.APPEND
        if entry.tag is not None:
            del self._tags[entry.tag]
        if entry.deadline_ns is not None:
            self._timed -= 1
            if len(self._deadlines) > 2 * self._timed + 16:
                self._deadlines = [item for item in self._deadlines if not item[2].gone]
                heapq.heapify(self._deadlines)

    def _first_timed(self) -> _Entry | None:
        while self._deadlines and self._deadlines[0][2].gone:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][2] if self._deadlines else None
