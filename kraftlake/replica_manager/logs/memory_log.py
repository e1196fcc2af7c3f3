"""The log of a replica, and the logs of a broker, in memory, for replay, simulations and tests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from itertools import islice

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.batch_run import BatchRun
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_manager import LogManager
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


@attrs.define(eq=False, repr=False)
class MemoryLogManager(LogManager[MemoryPartitionLog]):
    """A `LogManager` whose directories are only names; its logs survive a restart of the replica manager."""

    stray_logs: dict[TopicPartition, MemoryPartitionLog] = attrs.field(factory=dict, init=False)
    """The stray logs found by `startup`."""

    def startup(self, topics: Collection[str], is_stray: Callable[[Uuid | None, int], bool]) -> None:  # noqa: ARG002
        """Set the stray logs and future logs aside; `is_stray` decides by topic id and partition number."""
        for logs in (self._logs, self._future_logs):
            for name in [name for name, log in logs.items() if is_stray(log.topic_id, name.partition)]:
                self.stray_logs[name] = logs.pop(name)

    def _make(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        directory: str,
        *,
        is_future: bool,  # noqa: ARG002
    ) -> MemoryPartitionLog:
        return MemoryPartitionLog(name, topic_id, directory, self.config_of(name.topic))

    def _discard(self, log: MemoryPartitionLog) -> None:
        pass

    def _make_current(self, future: MemoryPartitionLog) -> None:
        pass
