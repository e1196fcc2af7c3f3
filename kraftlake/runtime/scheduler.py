"""Tasks at their time, once or again and again, on the thread of an event queue."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import attrs

from kraftlake.runtime.event_order import EventQueueClosedError
from kraftlake.runtime.event_queue import EventQueue
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


@attrs.define(kw_only=True, eq=False)
class ScheduledTask:
    """A task that waits for its time; `cancel` forgets it."""

    name: str
    is_cancelled: bool = False
    _run: Callable[[], None] = attrs.field(alias="run", repr=False)
    _period_ns: int | None = attrs.field(alias="period_ns")
    _due_ns: int = attrs.field(alias="due_ns")
    _tag: str = attrs.field(alias="tag", repr=False)
    _queue: EventQueue = attrs.field(alias="queue", repr=False)

    def cancel(self) -> None:
        """Do not run it any more; a run that is under way ends."""
        self.is_cancelled = True
        self._queue.cancel_deferred(self._tag)

    def wait(self) -> None:
        """Let it wait in the queue."""
        self._queue.schedule_deferred(self._tag, self._due_ns, self)

    def run(self) -> None:
        """Its time has come. A fault is logged by the task's name, and a periodic one comes again all the same."""
        if self.is_cancelled:
            return
        try:
            self._run()
        except Exception as fault:  # a task is not to stop the others
            _log.error("task_failed", task=self.name, cause=f"{type(fault).__name__}: {fault}")
        if self._period_ns is not None and not self.is_cancelled:
            # what was missed while others took their time is not made up for
            self._due_ns = max(self._due_ns + self._period_ns, self._queue.clock.nanoseconds())
            self.wait()

    def handle_exception(self, error: Exception) -> None:
        """It will not run any more: the scheduler ends."""
        if not isinstance(error, EventQueueClosedError):
            raise error


class Scheduler:
    """Runs tasks one at a time on `queue`: a thread's, or one that a test turns.

    Source: org.apache.kafka.server.util.KafkaScheduler.
    """

    def __init__(self, queue: EventQueue) -> None:
        self.queue = queue
        self._numbers = count()

    def schedule(
        self, name: str, task: Callable[[], None], *, delay_ms: float = 0, period_ms: float | None = None
    ) -> ScheduledTask:
        """Run `task` in `delay_ms`, and then every `period_ms`, or once; `name` is what it is called in messages.

        Nothing happens after `shutdown`. ValueError for a period that is not above 0.
        """
        if period_ms is not None and period_ms <= 0:
            raise ValueError(f"task {name} can't run every {period_ms} ms")
        scheduled = ScheduledTask(
            name=name,
            run=task,
            period_ns=None if period_ms is None else round(period_ms * 1_000_000),
            due_ns=self.queue.clock.nanoseconds() + round(delay_ms * 1_000_000),
            tag=f"{name}-{next(self._numbers)}",
            queue=self.queue,
        )
        scheduled.wait()
        return scheduled

    def after(self, delay_ms: float, task: Callable[[], None]) -> None:
        """Run `task` once, in `delay_ms`."""
        self.schedule("once", task, delay_ms=delay_ms)

    def shutdown(self) -> None:
        """Run nothing any more; returns when what is running has ended."""
        self.queue.close()
