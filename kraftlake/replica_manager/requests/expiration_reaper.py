"""Completes delayed requests at their timeout: a thin driver of the purgatories."""

from __future__ import annotations

from typing import Final

from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.runtime.event_order import EventQueueClosedError, earliest
from kraftlake.runtime.event_queue import EventQueue, FunctionEvent

_TAG: Final = "expiration-reaper"


class ExpirationReaper:
    """Calls `delayed.expire` on `queue` at the next deadline of any request, from its construction on.

    Source: org.apache.kafka.server.purgatory.DelayedOperationPurgatory, whose reapers have a thread each.
    """

    def __init__(self, delayed: DelayedRequests, queue: EventQueue) -> None:
        self._delayed = delayed
        self._queue = queue
        for purgatory in delayed:
            purgatory.wake_by = self._wake_by

    def _wake_by(self, deadline_ns: int) -> None:
        self._queue.schedule_deferred(_TAG, earliest(deadline_ns), FunctionEvent(self._expire, _closed_is_fine))

    def _expire(self) -> None:
        try:
            self._delayed.expire()
        finally:  # an error of one request must not keep the others from their timeout
            following = self._delayed.next_deadline()
            if following is not None:
                self._wake_by(following)


def _closed_is_fine(error: Exception) -> None:
    if not isinstance(error, EventQueueClosedError):
        raise error
