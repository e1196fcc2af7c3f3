"""What must hold of the batches of idempotent producers: each continues the last one, unless that was forgotten.

A broker forgets a producer that has written nothing for `producer.id.expiration.ms`. It then takes any batch of it,
also one that it has. Only who has forgotten whom, and where its log ended then, excuses such a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from simulator.invariants import violated
from simulator.mirrors import held_batches
from simulator.scheduler import active

EXPIRATION_MS = 120_000
"""producer.id.expiration.ms of all brokers."""
_LAST_SEQUENCE = 0x7FFF_FFFF

Key = tuple[Uuid, int]
LeaderOf = Callable[[Key, int], str]
"""The name of the broker that led a partition in an epoch."""


@attrs.define
class ProducerWatch:
    """Knows the last committed batch of each producer in each partition, and what brokers have rightfully forgotten."""

    leader_of: LeaderOf
    excused: int = 0
    """How many batches do not continue the one before, and may."""
    _last: dict[tuple[Key, int], LogBatch] = attrs.field(factory=dict)
    _anew: dict[tuple[Key, int], int] = attrs.field(factory=dict)
    """The offset of the last batch of a producer that was excused."""
    _expired: dict[tuple[str, Key], dict[int, list[int]]] = attrs.field(factory=dict)
    """Where the log of a broker ended when it forgot a producer, by the broker, the partition and the producer's id."""
    _taken: dict[tuple[Key, int, int], tuple[int, ...]] = attrs.field(factory=dict)
    """The same as it was when the leader took a batch, by partition, leader epoch and offset: logs are cut later."""

    def hooks(self) -> list[tuple[Any, str, Any]]:
        """Objects, names of their attributes, and the values to give them."""
        expire = PartitionLog.remove_expired_producers

        def new_expire(log: PartitionLog, *arguments: Any) -> None:
            known = {state.producer_id for state in log.producers.states()}
            expire(log, *arguments)
            gone = known - {state.producer_id for state in log.producers.states()}
            if gone and log.topic_id is not None:
                self.expired(log, (log.topic_id, log.topic_partition.partition), sorted(gone))

        return [(PartitionLog, "remove_expired_producers", new_expire)]

    def expired(self, log: Any, key: Key, ids: Iterable[int]) -> None:
        """A broker has forgotten producers, all of which have to be idle.

        Where its log lacks their batches, as compaction removes those of forgotten producers, the last one that is
        committed decides, if the log reaches it.
        """
        name, now_ms, batches = active().process.name, active().time_ns() // 1_000_000, held_batches(log)
        for id_ in ids:
            last = next((one for one in reversed(batches) if one.producer_id == id_), self._last.get((key, id_)))
            if last is not None and last.base_offset < log.log_end_offset:
                idle_ms = now_ms - last.max_timestamp
                if idle_ms < EXPIRATION_MS:
                    batch = f"whose batch at {last.base_offset} is {idle_ms} ms old"
                    violated(f"{log.topic_partition}: {name} forgets producer {id_}, {batch}")
            self._expired.setdefault((name, key), {}).setdefault(id_, []).append(log.log_end_offset)

    def cut(self, name: str, key: Key, offset: int) -> None:
        """The log of a broker ends earlier, perhaps where it had not forgotten a producer yet."""
        for ends in self._expired.get((name, key), {}).values():
            ends[:] = [min(end, offset) for end in ends]

    def begun(self, name: str, key: Key) -> None:
        """A broker has a new log, from which it learns of all producers."""
        self._expired.pop((name, key), None)

    def appended(self, name: str, key: Key, batch: LogBatch) -> None:
        """A broker has written a batch: at first as the leader that takes it, later perhaps as one that has lost it."""
        if self.leader_of(key, batch.leader_epoch) == name:
            ends = self._expired.get((name, key), {}).get(batch.producer_id, ())
            self._taken.setdefault((key, batch.leader_epoch, batch.base_offset), tuple(ends))

    def committed(self, key: Key, batch: LogBatch) -> str:
        """A batch is committed; returns what is wrong with its sequence number."""
        if batch.producer_id < 0 or batch.control:
            return ""
        of = key, batch.producer_id
        before = self._last.get(of)
        self._last[of] = batch
        if _continues(before, batch):
            return ""
        if self._was_forgotten(key, before, batch):
            self.excused += 1
            self._anew[of] = batch.base_offset
            return ""
        behind = "" if before is None else f" behind {before.base_sequence} to {before.last_sequence}"
        at = "" if before is None else f" of {before.base_offset}"
        return f"the batch at {batch.base_offset} of producer {batch.producer_id} has {batch.base_sequence}{behind}{at}"

    def may_refuse(self, key: Key, producer_id: int, after: int, log: Any) -> bool:
        """Whether a leader may want another batch: it has taken one anew, since it had forgotten the producer.

        Or the producer has been idle for so long that its last batches are compacted away, and an earlier one is the
        last in the log of a new replica. `after` is the offset of the last acknowledged batch, `log` the leader's.
        """
        of = key, producer_id
        if self._anew.get(of, -1) > after:
            return True
        before = self._last.get(of)
        if before is not None and active().time_ns() // 1_000_000 - before.max_timestamp >= EXPIRATION_MS:
            return True
        for batch in held_batches(log, 0 if before is None else before.last_offset + 1):
            if batch.producer_id == producer_id and not batch.control:
                if not _continues(before, batch):
                    return self._was_forgotten(key, before, batch)
                before = batch
        return False

    def _was_forgotten(self, key: Key, before: LogBatch | None, batch: LogBatch) -> bool:
        """Whether the leader that appended a batch had forgotten its producer since the batch before."""
        ends = self._taken.get((key, batch.leader_epoch, batch.base_offset), ())
        return before is not None and any(before.base_offset < end <= batch.base_offset for end in ends)


def _continues(before: LogBatch | None, batch: LogBatch) -> bool:
    if before is None or batch.producer_epoch > before.producer_epoch:
        return batch.base_sequence == 0
    is_next = batch.base_sequence == (before.last_sequence + 1) & _LAST_SEQUENCE
    return batch.producer_epoch == before.producer_epoch and is_next
