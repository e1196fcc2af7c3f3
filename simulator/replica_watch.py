"""What must hold of the replicas of a simulated cluster, checked at each append, truncation and high watermark.

All logs are mirrored by the checksums of their batches: what a leader has once committed, every replica has for ever.
Compacted logs are mirrored by their records, see `compacted_logs`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.batch_run import BatchRun
from kraftlake.replica_manager.logs.cleaning.log_cleaner import LogCleaner
from kraftlake.replica_manager.logs.cleaning.log_cleaning import LogCleaning
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment
from kraftlake.replica_manager.logs.partition_folder import FUTURE
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.partition import Partition
from simulator.compacted_logs import COMPACTED, cleaned_records, records_of
from simulator.idle_producers import ProducerWatch
from simulator.invariants import nothing_promised, violated
from simulator.mirrors import Committed, Mirror, held_batches
from simulator.scheduler import Process, active
from simulator.specification import (
    LEADER_CANDIDATE_COMPLETENESS,
    LEADER_COMPLETENESS,
    LOG_MATCHING,
    MIN_ISR,
    REPLICATION_QUORUM_SUPERSET,
    quorum_problem,
)

Key = tuple[Uuid, int]


class ReplicaWatch:
    """Checks replicas; `hooks` are the attributes to replace while the simulation runs."""

    def __init__(self) -> None:
        self.committed: dict[Key, Committed] = {}
        self.names: dict[Key, str] = {}
        self.newest = MetadataImage.EMPTY
        self.leaders: dict[tuple[Uuid, int, int], Process] = {}
        """Who led a partition in an epoch."""
        self.leader_moves = 0
        """How often a partition was led by another broker than in the epoch before that had a leader."""
        self.note: Callable[[str], None] = lambda what: None
        self.is_proposed_late: Callable[[Uuid, int, int], bool] = lambda topic_id, partition, epoch: False
        self.producers = ProducerWatch(lambda key, epoch: getattr(self.leaders.get((*key, epoch)), "name", ""))
        self._mirrors: dict[PartitionLog, Mirror] = {}
        self._leading: dict[tuple[Process, Uuid, int], int] = {}
        self._marks: dict[tuple[Process, Uuid, int, int], int] = {}

    def hooks(self) -> list[tuple[Any, str, Any]]:
        """Objects, names of their attributes, and the values to give them."""
        watch = self
        write, lead, follow = DiskPartitionLog._write, Partition.make_leader, Partition.make_follower
        replace, begin = DiskPartitionLog.replace_segments, LogCleaning.__attrs_post_init__
        set_aside = LogCleaner._set_aside
        names = ("log_start_offset", "log_end_offset", "high_watermark")
        starts, ends, marks = (vars(PartitionLog)[name] for name in names)

        def new_write(log: DiskPartitionLog, run: BatchRun) -> None:
            write(log, run)
            watch.written(log, run)

        def new_lead(partition: Partition, registration: PartitionRegistration, **more: Any) -> bool:
            return watch.led(partition, registration, lambda: lead(partition, registration, **more))

        def new_follow(partition: Partition, registration: PartitionRegistration, **more: Any) -> bool:
            watch.forget_leader(partition)  # it may lead, and commit more, up to where it takes the lock
            try:
                return follow(partition, registration, **more)
            finally:
                watch.forget_leader(partition)

        def set_start(log: PartitionLog, offset: int) -> None:
            starts.__set__(log, offset)
            if offset:  # records would have to be as old as retention.ms, or somebody ask for their deletion
                violated(f"{log.topic_partition}: the log of {active().process.name} starts at {offset}")

        def set_end(log: PartitionLog, offset: int) -> None:
            ends.__set__(log, offset)
            watch.ended(log, offset)

        def set_mark(log: PartitionLog, offset: int) -> None:
            marks.__set__(log, offset)
            watch.marked(log, offset)

        def new_begin(cleaning: LogCleaning) -> None:
            active().process.extra[f"cleaning_ms of {cleaning.to_clean.log.topic_partition}"] = cleaning.now_ms
            begin(cleaning)

        def new_replace(log: DiskPartitionLog, old: Sequence[LogSegment]) -> None:
            watch.cleaned(log, old)
            replace(log, old)

        def new_set_aside(cleaner: LogCleaner, log: DiskPartitionLog, error: Exception) -> None:
            set_aside(cleaner, log, error)
            if log.topic_partition in cleaner.uncleanable:
                violated(f"{log.topic_partition}: {active().process.name} can't clean its log: {error!r}")

        return [
            *self.producers.hooks(),
            (LogCleaner, "_set_aside", new_set_aside),
            (LogCleaning, "__attrs_post_init__", new_begin),
            (DiskPartitionLog, "replace_segments", new_replace),
            (DiskPartitionLog, "_write", new_write),
            (Partition, "make_leader", new_lead),
            (Partition, "make_follower", new_follow),
            (PartitionLog, "log_start_offset", property(starts.__get__, set_start)),
            (PartitionLog, "log_end_offset", property(ends.__get__, set_end)),
            (PartitionLog, "high_watermark", property(marks.__get__, set_mark)),
        ]

    # mirrors

    def mirror(self, log: PartitionLog) -> Mirror:
        """The mirror of a log, which is read at first."""
        found = self._mirrors.get(log)
        if found is None:
            found = self._mirrors[log] = Mirror()
            held = held_batches(log)
            for batch in held:
                found.batches.add(batch.base_offset, batch.last_offset + 1, crc32(batch.data))
            if log.topic_partition.topic in COMPACTED:
                found.records = records_of(held)
        return found

    def written(self, log: PartitionLog, run: BatchRun) -> None:
        """Batches were written at the end of a log."""
        written, batches = run.batches, self.mirror(log).batches
        if log.topic_id is not None:
            name, key = active().process.name, (log.topic_id, log.topic_partition.partition)
            if written[0].base_offset == 0:
                self.producers.begun(name, key)
            for batch in written:
                self.producers.appended(name, key, batch)
        for batch in written:
            if batch.base_offset >= batches.end:
                batches.add(batch.base_offset, batch.last_offset + 1, crc32(batch.data))
                if log.topic_partition.topic in COMPACTED:
                    self.mirror(log).records.update(records_of([batch]))

    def cleaned(self, log: DiskPartitionLog, old: Sequence[LogSegment]) -> None:
        """Segments of a log are about to be replaced by what a cleaner has left of them."""
        name, mirror, process = log.topic_partition, self.mirror(log), active().process
        self._require(name.topic in COMPACTED, lambda: f"{name}: {process.name} cleans a log that is not compacted")
        assert log.topic_id is not None
        start, end = old[0].base_offset, old[-1].next_offset()
        before = {offset: held for offset, held in mirror.records.items() if start <= offset < end}
        after = cleaned_records(log, old)
        committed = self.committed.setdefault((log.topic_id, name.partition), Committed())
        # Not the log's own high watermark: a follower's falls to that of a new leader, below what it has cleaned by.
        upto = min(log.active.base_offset, committed.batches.end)
        self.note(f"{name}: {process.name} leaves {len(after)} of {len(before)} records from {start} to {end}")
        problem = committed.compacted.cleaned(before, after, upto, process.extra[f"cleaning_ms of {name}"])
        self._require(not problem, lambda: f"{name}: {process.name} {problem}")
        for offset in before.keys() - after.keys():
            del mirror.records[offset]
        mirror.records.update(after)
        mirror.compared = min(mirror.compared, start)

    def ended(self, log: PartitionLog, offset: int) -> None:
        """A log has another end."""
        if offset and log.topic_id is not None:  # it has none before it is loaded
            self.producers.cut(active().process.name, (log.topic_id, log.topic_partition.partition), offset)
        mirror = self._mirrors.get(log)
        if mirror is not None and offset < mirror.batches.end:
            mirror.batches.cut(offset)
            mirror.records = {at: held for at, held in mirror.records.items() if at < offset}
            if log.topic_partition.topic in COMPACTED and mirror.batches.end < offset:
                mirror.batches.add(mirror.batches.end, offset, 0)  # the end may be in a hole
            mirror.compared = min(mirror.compared, offset)

    def forget(self, process: Process) -> None:
        """A process has ended, and its logs are no objects any more."""
        for key in [key for key in self._leading if key[0] is process]:
            del self._leading[key]
        for log in [log for log in self._mirrors if getattr(log, "files", None) is not None and _of(log) is process]:
            del self._mirrors[log]

    def forget_epochs(self) -> None:
        """The metadata has gone back to `newest`: later epochs of leaders will be given again."""
        for topic_id, number, epoch in list(self.leaders):
            state = self.newest.topics.get_partition(topic_id, number)
            if state is None or epoch > state.leader_epoch:
                del self.leaders[topic_id, number, epoch]

    # invariants

    def led(self, partition: Partition, registration: PartitionRegistration, lead: Callable[[], bool]) -> bool:
        """A broker becomes the leader of a partition, or stays it."""
        topic_id, number = partition.topic_id, partition.topic_partition.partition
        process, epoch = active().process, registration.leader_epoch
        if registration.partition_epoch < partition.partition_epoch or topic_id is None:
            return lead()
        key = (topic_id, number)
        known = self.leaders.setdefault((*key, epoch), process)
        self._require(
            known.name == process.name,
            lambda: f"{partition.topic_partition}: {known.name} and {process.name} both lead in epoch {epoch}",
        )
        is_new = self._leading.get((process, *key)) != epoch
        self._leading[process, *key] = epoch
        done = lead()
        if is_new and partition.log is not None:
            self.leader_moves += self._has_moved(key, epoch, process)
            self.note(
                f"{partition.topic_partition}: {process.name} leads in epoch {epoch} with ISR {registration.isr}, ELR "
                f"{registration.elr}, ends at {partition.log.log_end_offset}"
            )
            newest = self.newest.topics.get_partition(*key)
            if newest is None or newest.leader_epoch <= epoch:  # the leader of an epoch that is over commits nothing
                self._check_elected(process, partition.topic_partition, topic_id, partition.log)
        return done

    def forget_leader(self, partition: Partition) -> None:
        """Forget that a broker led a partition, unless it still does."""
        if not partition.is_leader and partition.topic_id is not None:
            self._leading.pop((active().process, partition.topic_id, partition.topic_partition.partition), None)

    def _has_moved(self, key: Key, epoch: int, process: Process) -> bool:
        """Whether an epoch is the first one of its leader after one of another leader."""
        epochs = [known for *of, known in self.leaders if tuple(of) == key and known < epoch]
        is_first = self.leaders[*key, epoch] is process  # and not the same broker started again
        return is_first and bool(epochs) and self.leaders[*key, max(epochs)].name != process.name

    def _check_elected(self, process: Process, name: Any, topic_id: Uuid, log: Any) -> None:
        committed = self.committed.setdefault((topic_id, name.partition), Committed())
        mirror = self.mirror(log)
        held, wanted = mirror.batches.end, committed.batches.end
        self._require(
            held >= wanted,
            lambda: f"{name}: {process.name} leads and holds offsets up to {held}, and {wanted} were committed",
            LEADER_COMPLETENESS,
        )
        self._compare(process, name, committed, mirror, wanted, of=LEADER_COMPLETENESS)

    def marked(self, log: PartitionLog, offset: int) -> None:
        """A log has another high watermark."""
        topic_id, name = log.topic_id, log.topic_partition
        if topic_id is None or FUTURE in getattr(log, "folder", "") or not hasattr(log, "segments"):
            return
        process = active().process
        key = (topic_id, name.partition)
        epoch = self._leading.get((process, *key))
        committed = self.committed.setdefault(key, Committed())
        self.names[key] = name.topic
        if epoch is not None:
            before = self._marks.get((process, *key, epoch), 0)
            self._require(
                offset >= before,
                lambda: f"{name}: the high watermark of {process.name} fell from {before} to {offset} in epoch {epoch}",
            )
            self._marks[process, *key, epoch] = offset
        else:
            self._require(
                offset <= committed.batches.end,
                lambda: f"{name}: {process.name} takes {offset} for committed, and {committed.batches.end} are",
            )
        if offset == 0:
            return
        mirror = self.mirror(log)
        if epoch is not None and offset > committed.batches.end:
            state = self.newest.topics.get_partition(*key)
            if state is not None and state.leader_epoch == epoch:
                self.check_quorum(name, topic_id, state, self.newest)
            self._check_in_sync(process, name, key, epoch, offset)
            self._commit(name, committed, log, topic_id, offset)
        self._compare(process, name, committed, mirror, min(offset, committed.batches.end), of=LOG_MATCHING)

    def _commit(self, name: Any, committed: Committed, log: PartitionLog, topic_id: Uuid, offset: int) -> None:
        """Take what a leader has committed newly."""
        there = committed.batches
        fresh = [batch for batch in held_batches(log, there.end) if batch.last_offset < offset]
        self.note(f"{name}: {active().process.name} commits {there.end} to {offset}")
        for batch in fresh:
            self._require(
                batch.base_offset == there.end,
                lambda b=batch: f"{name}: the batch at {b.base_offset} is committed behind {there.end}",  # type: ignore[misc]
            )
            there.add(batch.base_offset, batch.last_offset + 1, crc32(batch.data))
            if name.topic in COMPACTED:
                committed.compacted.commit(batch)
            if problem := self.producers.committed((topic_id, name.partition), batch):
                violated(f"{name}: {problem}")
        self._require(there.end == offset, lambda: f"{name}: {offset} is committed, and the log has {there.end}")

    def _compare(
        self, process: Process, name: Any, committed: Committed, mirror: Mirror, upto: int, *, of: str
    ) -> None:
        """A replica has what was committed, up to an offset."""
        held, there = mirror.batches, committed.batches
        start = mirror.compared
        if start >= upto:
            return
        if name.topic in COMPACTED:
            problem = committed.compacted.problem(mirror.records, start, upto)
            self._require(not problem, lambda: f"{name}: {process.name} {problem}", of)
            mirror.compared = upto
            return
        at, other = bisect_right(held.ends, start), bisect_right(there.ends, start)
        while other < len(there.ends) and there.ends[other] <= upto:
            same = at < len(held.ends) and (held.bases[at], held.ends[at], held.sums[at]) == (
                there.bases[other], there.ends[other], there.sums[other],
            )  # fmt: skip
            self._require(
                same,
                lambda o=other: f"{name}: {process.name} has other records at {there.bases[o]} than were committed",  # type: ignore[misc]
                of,
            )
            at, other = at + 1, other + 1
        mirror.compared = max(mirror.compared, upto)

    def _check_in_sync(self, process: Process, name: Any, key: Key, epoch: int, offset: int) -> None:
        """By the newest metadata, the ISR is large enough to commit, and no member ends before the high watermark."""
        state = self.newest.topics.get_partition(*key)
        if state is None or state.leader_epoch != epoch or f"broker-{state.leader}" != process.name:
            return
        partition = process.extra["node"].partition(name)
        if partition is None or (partition.topic_id, partition.partition_epoch) != (key[0], state.partition_epoch):
            return
        self._require(
            len(state.isr) >= MIN_ISR,
            lambda: f"{name}: {process.name} commits up to {offset} with the ISR {state.isr}",
        )
        for id_ in state.isr:
            other = active().outside.extra["brokers"].get(id_)
            if other is None or not other.is_registered(self.newest):
                continue
            end = self._end_of(other, name, key[0])
            self._require(
                end >= offset,
                lambda i=id_, e=end: f"{name}: broker {i} is in sync, ends at {e}, and {offset} is committed",  # type: ignore[misc]
                LEADER_CANDIDATE_COMPLETENESS,
            )

    def _end_of(self, broker: Any, name: TopicPartition, topic_id: Uuid) -> int:
        """Where a broker's replica ends, or did when its directory failed; -1 without one."""
        log = broker.log(name)
        if log is not None:
            return self.mirror(log).batches.end if log.topic_id == topic_id else -1
        failed = (
            mirror.batches.end
            for log, mirror in self._mirrors.items()
            if (log.topic_id, log.topic_partition) == (topic_id, name)
            and _of(log) is broker.process
            and broker.is_offline(log)
        )
        return next(failed, -1)

    def check_candidates(self, name: TopicPartition, topic_id: Uuid, members: set[int], image: MetadataImage) -> None:
        """Brokers may lead from now on: each has all that was committed."""
        committed = self.committed.get((topic_id, name.partition))
        if committed is None:
            return
        wanted = committed.batches.end
        for id_ in members:
            node = active().outside.extra["brokers"][id_]
            log = node.log(name) if node.is_registered(image) else None
            if log is not None and log.topic_id == topic_id:
                mirror = self.mirror(log)
                self._require(
                    mirror.batches.end >= wanted,
                    lambda i=id_, e=mirror.batches.end: (
                        f"{name}: {i} may lead, ends at {e}, and {wanted} are committed"
                    ),  # type: ignore[misc]
                    LEADER_CANDIDATE_COMPLETENESS,
                )
                self._compare(node.process, name, committed, mirror, wanted, of=LEADER_CANDIDATE_COMPLETENESS)

    def check_quorum(
        self, name: TopicPartition, topic_id: Uuid, state: PartitionRegistration, image: MetadataImage
    ) -> None:
        """A leader waits for all that may lead next; `state` is the newest."""
        node = active().outside.extra["brokers"].get(state.leader)
        if node is None or not node.process.alive or not node.is_registered(image):
            return
        partition = node.partition(name)
        problem = "" if partition is None else quorum_problem(partition, topic_id, state)
        if problem and self.is_proposed_late(topic_id, name.partition, state.partition_epoch):
            nothing_promised(f"{name}: {node.name} {problem}, since a late proposal was accepted")
        self._require(not problem, lambda: f"{name}: {node.name} {problem}", REPLICATION_QUORUM_SUPERSET)

    def _require(self, holds: bool, words: Callable[[], str], of: str = "") -> None:
        if not holds:
            violated(words(), of)


def _of(log: Any) -> Process | None:
    process: Process | None = log.files._files.process
    return process
