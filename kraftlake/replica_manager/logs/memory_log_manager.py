"""The logs of a broker in memory, for replay, simulations and tests."""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_manager import LogManager
from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog


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
