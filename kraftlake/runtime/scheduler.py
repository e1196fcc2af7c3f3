"""Delayed and periodic tasks on the thread of an event queue."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import attrs

from kraftlake.runtime.event_queue import EventQueue, raise_unless_closed
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


@attrs.define(kw_only=True, eq=False)
class ScheduledTask:
    """A scheduled task."""

    name: str
    is_cancelled: bool = False
    _run: Callable[[], None] = attrs.field(alias="run", repr=False)
    _period_ns: int | None = attrs.field(alias="period_ns")
    _due_ns: int = attrs.field(alias="due_ns")
    _tag: str = attrs.field(alias="tag", repr=False)
    _queue: EventQueue = attrs.field(alias="queue", repr=False)

    def cancel(self) -> None:
        """Cancel the task's further runs; a run in progress ends normally."""
        self.is_cancelled = True
        self._queue.cancel_deferred(self._tag)

    def wait(self) -> None:
        """Add the task to the queue."""
        self._queue.schedule_deferred(self._tag, self._due_ns, self)

    def run(self) -> None:
        """Run the task; a fault is logged with the task's name, and a periodic task runs again."""
        if self.is_cancelled:
            return
        try:
            self._run()
        except Exception as fault:  # a faulty task must not stop the others
            _log.error("task_failed", task=self.name, cause=f"{type(fault).__name__}: {fault}")
        if self._period_ns is not None and not self.is_cancelled:
            # missed runs are skipped
            self._due_ns = max(self._due_ns + self._period_ns, self._queue.clock.nanoseconds())
            self.wait()

    def handle_exception(self, error: Exception) -> None:
        """Ignore the end of the queue."""
        raise_unless_closed(error)


class Scheduler:
    """Runs tasks one at a time on `queue`.

    Source: org.apache.kafka.server.util.KafkaScheduler.
    """

    def __init__(self, queue: EventQueue) -> None:
        self.queue = queue
        self._numbers = count()

    def schedule(
        self, name: str, task: Callable[[], None], *, delay_ms: float = 0, period_ms: float | None = None
    ) -> ScheduledTask:
        """Run `task` after `delay_ms`, and then every `period_ms`, if given; `name` is for messages.

        No task runs after `shutdown`. Raises ValueError for a period that is not above 0.
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
        """Run `task` once, after `delay_ms`."""
        self.schedule("once", task, delay_ms=delay_ms)

    def shutdown(self) -> None:
        """Run no more tasks; returns when the running task has ended."""
        self.queue.close()
