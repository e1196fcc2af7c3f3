"""What a log must be after a kill or a power cut, and in itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from kraftlake.replica_manager.logs.batch_run import find_batches
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_segment import batches_in
from kraftlake.replica_manager.logs.log_batch import LogBatch, joined
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.memory_log import MemoryPartitionLog
from tests.replica_manager.logs.disk.test_disk_log import state_of


@attrs.frozen
class Expected:
    """What a log has; of it a power cut leaves what is below `durable` for sure, and a kill all that is below `end`."""

    batches: tuple[LogBatch, ...] = ()
    """All that was appended and not truncated, also below the start."""
    begin: int = 0
    """The first offset, where the log began or began anew."""
    start: int = 0
    covered: int = 0
    """From where on leader epochs are known: they go with deleted records, which a restart may bring back."""
    checkpointed_start: int = 0
    durable: int = 0

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.batches[-1].last_offset + 1 if self.batches else self.begin

    def appended(self, data: Iterable[LogBatch]) -> Expected:
        """With more batches."""
        return attrs.evolve(self, batches=(*self.batches, *data))

    def cut(self, offset: int) -> Expected:
        """Truncated to the end of a batch."""
        kept = tuple(one for one in self.batches if one.last_offset < offset)
        durable, covered = min(self.durable, offset), min(self.covered, offset)
        return attrs.evolve(self, batches=kept, durable=durable, covered=covered)

    def restarted(self, offset: int) -> Expected:
        """Begun anew. Where an empty log begins, its folder may not say yet."""
        return Expected(begin=offset, start=offset)

    def problem(self, log: DiskPartitionLog, could: Sequence[Expected], *, lossy: bool) -> str | None:
        """Why a log is not this; None where it is. `could` has this and what else it may be.

        `lossy` says that what was not synced may be lost.
        """
        lossy |= len({one.begin for one in could}) > 1  # all of it was being removed
        least = min(one.durable if lossy else one.end for one in could)
        first = min(one.checkpointed_start for one in could)
        start, end = log.log_start_offset, log.log_end_offset
        kept = [one for one in self.batches if start <= one.last_offset < end]
        if end < least and not (self.begin and not log.batches):
            return f"ends at {end}, and had all below {least}"
        if end > self.end or (kept and kept[-1].last_offset + 1 != end):
            return f"ends at {end}, which was no end before {self.end}"
        if not first <= start <= self.start:
            return f"starts at {start}, not in {first} to {self.start}"
        if list(log.batches) != kept:
            return f"has the batches {_offsets(log.batches)}, not {_offsets(kept)}"
        return None


def _offsets(batches: Iterable[LogBatch]) -> list[int]:
    return [one.base_offset for one in batches]


def check_inside(log: DiskPartitionLog, covered: int, config: LogConfig) -> None:
    """Indexes, epochs from `covered` on, producers and transactions are those of the batches."""
    name, whole = log.topic_partition, log.log_start_offset == 0
    assert log.recovery_point <= log.log_end_offset, f"{name}: recovery point {log.recovery_point}"
    assert find_batches(joined(log.batches))[1] is None, f"{name}: damaged batches"
    _check_epochs(log, covered)
    memory = _replayed(log, config)
    for producer in {one.producer_id for one in log.batches}:
        found, wanted = state_of(log, producer), state_of(memory, producer)
        if whole:
            assert found == wanted, f"{name}: producer {producer} is {found}, not {wanted}"
            _check_repeated(log, memory, producer)
        elif wanted is not None and wanted[-1] is not None:
            assert found is not None, f"{name}: producer {producer} is forgotten"
            assert found[-1] == wanted[-1], f"{name}: the last batch of producer {producer} is {found}, not {wanted}"
    for time in (*(one.max_timestamp for one in log.batches), -1, -2, -3):
        assert log.offset_for_timestamp(time) == memory.offset_for_timestamp(time), f"{name}: time {time}"
    if whole:
        assert {state.producer_id for state in log.producers.states()} <= {one.producer_id for one in log.batches}
        for each in (log, memory):
            each.update_high_watermark(each.log_end_offset)
        assert log.last_stable_offset == memory.last_stable_offset, f"{name}: last stable offset"
    _check_segments(log)


def _check_repeated(log: DiskPartitionLog, memory: MemoryPartitionLog, producer: int) -> None:
    """A client that repeats one of the producer's last batches learns where it is."""
    state = memory.producers.get(producer)
    known = () if state is None or producer < 0 else {one.first_offset for one in state.batches}
    for repeated in [one for one in log.batches if one.base_offset in known]:
        appended = log.append_as_leader(repeated.data, repeated.leader_epoch)
        assert (appended.first_offset, appended.size_in_bytes) == (repeated.base_offset, 0), (
            f"{log.topic_partition}: {appended}"
        )


def _replayed(log: DiskPartitionLog, config: LogConfig) -> MemoryPartitionLog:
    """A log in memory of the same batches."""
    memory = MemoryPartitionLog(log.topic_partition, log.topic_id, log.directory, config)
    memory.truncate_fully_and_start_at(min([log.log_start_offset, *_offsets(log.batches)]))
    for one in log.batches:
        memory.append_as_follower(one.data, one.leader_epoch)
    memory.log_start_offset = log.log_start_offset
    memory._epochs.load(log.epochs)  # `_check_epochs` has looked at them; a leader notes its own before any batch
    return memory


def _check_epochs(log: DiskPartitionLog, covered: int) -> None:
    for one in log.batches:
        is_covered = one.last_offset >= covered
        first = max(one.base_offset, covered) if is_covered else one.base_offset
        held = max((epoch for epoch, start in log.epochs if start <= first), default=None)
        assert held == one.leader_epoch or (held is None and not is_covered), (
            f"{log.topic_partition}: epochs {log.epochs}, and a batch of epoch {one.leader_epoch} at {one.base_offset}"
        )
    assert not log.batches or max((start for _, start in log.epochs), default=0) < log.log_end_offset


def _check_segments(log: DiskPartitionLog) -> None:
    end = log.segments[0].base_offset
    for segment in log.segments:
        where = f"{log.topic_partition}, segment {segment.base_offset}"
        assert segment.base_offset == end, f"{where} does not follow {end}"
        held = dict(batches_in(segment.log))
        size = sum(one.size for one in held.values())
        assert size == segment.size, f"{where} has {segment.size - size} bytes behind its batches"
        end = max((one.last_offset + 1 for one in held.values()), default=end)
        for relative, position in map(segment.offsets.__getitem__, range(len(segment.offsets))):
            assert position in held, f"{where}: no batch is at {position}"
            assert held[position].last_offset == segment.base_offset + relative, f"{where}: index"
        times = {one.last_offset - segment.base_offset: one.max_timestamp for one in held.values()}
        for time, relative in map(segment.times.__getitem__, range(len(segment.times))):
            assert times.get(relative) == time, f"{where}: time index"
        largest = max(times.values(), default=-1)
        assert segment.largest_timestamp == largest, f"{where}: largest timestamp {segment.largest_timestamp}"
