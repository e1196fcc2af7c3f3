"""The log of a replica in memory, for replay, simulations and tests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

import attrs

from kraftlake.replica_manager.logs.batch_run import BatchRun
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.open_transactions import EndedTransaction
from kraftlake.replica_manager.logs.partition_log import PartitionLog


@attrs.define(eq=False, repr=False, weakref_slot=False)
class MemoryPartitionLog(PartitionLog):
    """A `PartitionLog` that keeps its batches in a list."""

    _batches: list[LogBatch] = attrs.field(factory=list, init=False)
    _last_offsets: list[int] = attrs.field(factory=list, init=False)

    def _write(self, run: BatchRun) -> None:
        self._batches += run.batches
        self._last_offsets += [batch.last_offset for batch in run.batches]

    def _note_aborted(self, ended: EndedTransaction) -> None:
        pass

    def _batches_from(self, offset: int) -> Iterator[LogBatch]:
        return islice(self._batches, bisect_left(self._last_offsets, offset), None)

    def _batches_with(self, timestamp: int) -> Iterator[LogBatch]:  # noqa: ARG002
        return iter(self._batches)

    def _latest_batch(self) -> LogBatch | None:
        return max(self._batches, key=lambda batch: batch.max_timestamp, default=None)

    def _cut(self, offset: int) -> None:
        keep = bisect_left(self._last_offsets, offset)
        del self._batches[keep:], self._last_offsets[keep:]
        self._transactions.load({})
        self.producers.load(())
        self.producers.replay(self._batches)
        self._transactions.append(self._batches)

    def _restart(self, offset: int) -> None:  # noqa: ARG002
        self._batches.clear()
        self._last_offsets.clear()

    def _drop_below(self, offset: int) -> None:
        gone = bisect_left(self._last_offsets, offset)
        del self._batches[:gone], self._last_offsets[:gone]
