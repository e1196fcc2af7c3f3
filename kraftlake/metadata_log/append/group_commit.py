"""Group commit: one thread appends the batches of many threads to a log, at one claimed epoch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from kraftlake.metadata_log.append.commit_queue import CommitQueue, GroupLimits, PendingAppend
from kraftlake.metadata_log.delta_table.commit import now_ms
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import KraftlakeError, LakeError, QueueFullError, RefusedReadError


class GroupCommit:
    """Appends the batches of many threads in order of arrival; batches that arrive together share one commit.

    Takes ownership of the handle `log`, which claimed `epoch`. The first failed append ends the group commit: waiting
    and later batches fail with the same fault, because their offsets would follow offsets that are not in the log.
    `on_failure` is called once, from the thread. To continue, claim a new epoch.
    """

    def __init__(
        self,
        log: MetadataLog,
        epoch: int,
        *,
        limits: GroupLimits | None = None,
        on_failure: Callable[[KraftlakeError], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._version = log.version
        self._queue = CommitQueue(limits or GroupLimits(), end_offset=log.end_offset, epoch=epoch)
        self._on_failure = on_failure
        self._clock = clock
        self._changed = threading.Condition()
        self._closing = False
        self._fault: KraftlakeError | None = None
        self._thread = threading.Thread(target=self._run, name=f"group-commit-{epoch}", daemon=True)
        self._thread.start()

    def append(
        self, messages: Sequence[ApiMessageAndVersion], *, timestamp: int | None = None, wait: float | None = 0.0
    ) -> PendingAppend:
        """Queue one batch; returns its offsets at once, and its `result()` returns when the batch is in the log.

        If the queue is full, waits up to `wait` seconds (None: without a limit), then raises QueueFullError. Raises the
        fault that ended the group commit, LakeError after `close`. `timestamp` is the batch's (epoch ms), now by
        default.
        """
        deadline = None if wait is None else self._clock() + wait
        with self._changed:
            while True:
                self._check_open()
                now = self._clock()
                try:
                    pending = self._queue.offer(messages, now_ms() if timestamp is None else timestamp, now)
                except QueueFullError:
                    if deadline is not None and now >= deadline:
                        raise
                    self._changed.wait(None if deadline is None else deadline - now)
                else:
                    self._changed.notify_all()
                    return pending

    @property
    def fault(self) -> KraftlakeError | None:
        """The fault that ended the group commit; None without one."""
        return self._fault

    def is_newest(self) -> bool:
        """Whether the log has surely no version after the last one of this group commit; looks for two file names.

        False during a commit, and after maintenance by others.
        """
        version = self._version
        try:
            # a later version is cleaned up after an earlier one
            return not self._log.has_version(version + 1) and self._log.has_version(version)
        except RefusedReadError:
            return False

    def close(self, timeout: float | None = None) -> None:
        """Commit the waiting batches, then end the thread; raises LakeError after `timeout` seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise LakeError(f"{self._log.path} was not written to within {timeout} seconds; appends may still be made.")

    def __enter__(self) -> GroupCommit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self._closing:
            raise LakeError(f"The group commit of {self._log.path} at epoch {self._epoch} is closed.")

    def _run(self) -> None:
        while group := self._next_group():
            try:
                self._version = self._log.append(
                    [pending.batch for pending in group],
                    epoch=self._epoch,
                    expected_end_offset=group[0].base_offset,
                )
            except BaseException as fault:
                self._fail(fault)
                return
            with self._changed:
                self._queue.settle()
                self._changed.notify_all()
            for pending in group:
                pending.done.set_result(pending.last_offset)

    def _next_group(self) -> list[PendingAppend]:
        """Wait for a group; returns an empty list once the queue is closed and empty."""
        with self._changed:
            while True:
                due = self._queue.due_at()
                now = self._clock()
                if due is not None and (self._closing or due <= now):
                    return self._queue.take(max(now, due))
                if self._closing and due is None:
                    return []
                self._changed.wait(None if due is None else due - now)

    def _fail(self, fault: BaseException) -> None:
        known = fault
        if not isinstance(known, KraftlakeError):
            known = LakeError(f"Appending to {self._log.path} failed: {fault!r}.")
            known.__cause__ = fault
        with self._changed:
            self._fault = known
            dropped = self._queue.drop()
            self._changed.notify_all()
        for pending in dropped:
            pending.done.set_exception(known)
        if self._on_failure is not None:
            self._on_failure(known)
