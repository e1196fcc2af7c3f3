"""The queue of a group commit: batches with assigned offsets, grouped into commits by size and delay. No I/O.

Times are seconds of one clock, which the caller chooses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

import attrs

from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import QueueFullError, UsageError


@attrs.frozen(kw_only=True)
class GroupLimits:
    """The bounds of a group, which is one commit, and of the queue.

    `max_delay` (seconds) is the time for which a batch waits for others while no commit is in progress; with 0 a group
    consists of the batches that arrived during the previous commit. A batch is never split, whatever its size.
    """

    max_delay: float = 0.0
    max_group_records: int = 10_000
    max_group_bytes: int = 1024 * 1024
    max_waiting_batches: int = 10_000
    max_waiting_bytes: int = 16 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            if value < (0 if name == "max_delay" else 1):
                raise UsageError(f"The limit {name} of a group commit can't be {value}.")


@attrs.frozen(kw_only=True, eq=False)
class PendingAppend:
    """A queued batch. `done` returns its last offset once the batch is durable, or raises the fault that stopped it."""

    batch: RecordBatch
    since: float
    size: int
    done: Future[int]

    @property
    def base_offset(self) -> int:
        """The offset of the first record, once the batch is in the log."""
        return self.batch.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last record, once the batch is in the log."""
        return self.batch.last_offset

    def result(self, timeout: float | None = None) -> int:
        """Wait until the batch is durable; returns its last offset. Raises the fault that stopped it, TimeoutError."""
        return self.done.result(timeout)


class CommitQueue:
    """Batches of one epoch in offset order, contiguous from `end_offset` on.

    A taken batch counts as waiting until its group is settled. Invariant: the waiting batches are within the limits in
    number, and in bytes unless one batch alone is larger.
    """

    def __init__(self, limits: GroupLimits, *, end_offset: int, epoch: int) -> None:
        self.limits = limits
        self.epoch = epoch
        self.next_offset = end_offset
        self._waiting: deque[PendingAppend] = deque()
        self._waiting_records = 0
        self._waiting_bytes = 0
        self._taken: list[PendingAppend] = []

    @property
    def is_empty(self) -> bool:
        """Whether no batch waits or is being committed."""
        return not self._waiting and not self._taken

    def offer(self, messages: Sequence[ApiMessageAndVersion], timestamp: int, now: float) -> PendingAppend:
        """Assign offsets to a batch and queue it; raises QueueFullError without room for it."""
        batch = RecordBatch.of(self.next_offset, self.epoch, timestamp, messages)
        size = sum(map(len, batch.values))
        if not self._has_room(size):
            raise QueueFullError(
                f"{self._count} batches with {self._bytes} bytes wait to be appended after offset "
                f"{self.next_offset - 1}: no more can wait; try again later."
            )
        pending = PendingAppend(batch=batch, since=now, size=size, done=Future())
        pending.done.set_running_or_notify_cancel()
        self._waiting.append(pending)
        self._waiting_records += batch.record_count
        self._waiting_bytes += size
        self.next_offset = batch.last_offset + 1
        return pending

    def due_at(self) -> float | None:
        """The time at which the next group is due; None while no batch waits or a group is being committed."""
        if not self._waiting or self._taken:
            return None
        full = (
            self._waiting_records >= self.limits.max_group_records or self._waiting_bytes >= self.limits.max_group_bytes
        )
        first = self._waiting[0].since
        return first if full else first + self.limits.max_delay

    def take(self, now: float) -> list[PendingAppend]:
        """Return the next group if due, else an empty list. Call `settle` before the next group is taken."""
        due = self.due_at()
        if due is None or due > now:
            return []
        group: list[PendingAppend] = []
        records = size = 0
        while self._waiting:
            pending = self._waiting[0]
            records += pending.batch.record_count
            size += pending.size
            if group and (records > self.limits.max_group_records or size > self.limits.max_group_bytes):
                break
            group.append(self._waiting.popleft())
        self._waiting_records -= sum(pending.batch.record_count for pending in group)
        self._waiting_bytes -= sum(pending.size for pending in group)
        self._taken = group
        return group

    def settle(self) -> list[PendingAppend]:
        """Remove the taken group, which is in the log, and return it."""
        taken, self._taken = self._taken, []
        return taken

    def drop(self) -> list[PendingAppend]:
        """Empty the queue, because no further append to the log is possible; returns the batches in order."""
        dropped = [*self._taken, *self._waiting]
        self._taken = []
        self._waiting.clear()
        self._waiting_records = self._waiting_bytes = 0
        return dropped

    @property
    def _count(self) -> int:
        return len(self._waiting) + len(self._taken)

    @property
    def _bytes(self) -> int:
        return self._waiting_bytes + sum(pending.size for pending in self._taken)

    def _has_room(self, size: int) -> bool:
        return self.is_empty or (
            self._count < self.limits.max_waiting_batches and self._bytes + size <= self.limits.max_waiting_bytes
        )
