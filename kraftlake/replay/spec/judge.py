"""The judgement of a log: a replay as columns, each metadata delta of which is held to the properties. Imports numpy.

States are judged at the end of an operation of the controller. One that is not atomic may span batches, of which all
but the last are full: it ends with the first batch that is not. Source: org.apache.kafka.controller.QuorumController,
MAX_RECORDS_PER_USER_OP.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kernels.record_types import CLEAR_ELR
from kraftlake.replay.loader.fold import snapshot_image
from kraftlake.replay.loader.record_faults import type_of
from kraftlake.replay.log.delta_chunk import DeltaChunk
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.replay.reading.chunks import chunks_of
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.progress import Progress, with_progress
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot
from kraftlake.replay.spec import cluster_rules, elr_rules, partition_rules, service_rules
from kraftlake.replay.spec.cluster_states import ClusterStates, level_of
from kraftlake.replay.spec.known_bugs import KnownBug
from kraftlake.replay.spec.partition_rules import Ruling
from kraftlake.replay.spec.partition_states import PartitionStates
from kraftlake.replay.spec.past_states import PastStates
from kraftlake.replay.spec.properties import PROPERTIES
from kraftlake.replay.spec.record_rules import Place, record_at, version_rulings
from kraftlake.replay.spec.spec_report import Judgement, SpecReport, Violation
from kraftlake.replay.spec.traces import bug_of
from kraftlake.runtime.errors import KraftlakeError

FULL_BATCH: Final = 10_000
JUDGING: Final = "judging"
"""The phase that progress reports."""


def judge_log(reader: LogReader, progress: Progress | None = None) -> SpecReport:
    """Judge all of a log whose images can be had: from its first offset, or from the snapshot that covers its start.

    What can't be replayed ends the judgement, and is said in the report; nothing is raised for it.
    """
    replay, judgement, first = LogReplay(), Judgement(), None
    try:
        if not has_beginning(reader):
            base = snapshot_image(oldest_snapshot(reader))
            replay.begin(base.image, base.quorum, is_load=True)
        first = replay.last_offset + 1
        judge, last = _Judge(replay, judgement), reader.end_offset - 1
        parts = with_progress(chunks_of(reader, first, last), progress, JUDGING, reader.end_offset)
        for chunks in replay.steps_of(iter(parts)):
            for chunk in chunks:
                judge.take(chunk)
    except KraftlakeError as error:
        end = replay.provenance.offset
        return judgement.report(first, end if first is not None and end >= first else None, str(error))
    return judgement.report(first, last if last >= first else None, None)


class _Judge:
    """Judges the deltas of a replay; `open` says that an operation goes on behind them."""

    def __init__(self, replay: LogReplay, judgement: Judgement) -> None:
        self._replay = replay
        self._judgement = judgement
        self._before: MetadataImage = replay.others
        self._end = replay.provenance.offset
        self._open = False
        self._resumed = frozenset[int]()

    def take(self, chunk: DeltaChunk) -> None:
        if not len(chunk.boundaries):
            return
        cluster = ClusterStates(self._before, chunk.others, self._resumed)
        _Chunk(chunk, cluster, self._end, self._judgement).judge(self._replay, was_open=self._open)
        self._resumed = cluster.resumed
        ends = np.bincount(chunk.deltas, minlength=len(chunk.boundaries)) < FULL_BATCH
        self._open = not ends[-1]
        self._before = chunk.others[-1].image if chunk.others else self._before
        self._end = int(chunk.boundaries.offsets[-1])


class _Chunk:
    """The deltas of one chunk, which follow the offset `end`, and the states of the cluster after them."""

    def __init__(self, chunk: DeltaChunk, cluster: ClusterStates, end: int, judgement: Judgement) -> None:
        self._chunk = chunk
        self._judgement = judgement
        self._end = end
        self._cluster = cluster
        self._past: PastStates | None = None
        count = len(chunk.boundaries)
        ends = np.flatnonzero(np.bincount(chunk.deltas, minlength=count) < FULL_BATCH)
        places = np.searchsorted(ends, np.arange(count))
        self._operations = np.append(ends, count)[places]
        """The delta with which the operation of each ends, their number where it ends behind the chunk."""

    def judge(self, replay: LogReplay, *, was_open: bool) -> None:
        self._judge_records()
        self._judge_changes(self._chunk.partitions, replay)
        self._judge_cluster()
        for operation, change in self._moments(was_open=was_open):
            self._judge_all(replay, operation, change)

    def _judge_records(self) -> None:
        for name, place, fault in version_rulings(self._chunk, self._levels, self._judgement.count):
            offset = int(self._chunk.records.effective[place])
            self._add(name, Place.of(self._chunk, place), offset, "record", fault)

    def _levels(self, deltas: Any) -> Any:
        """The level of metadata.version after each delta, 0 for none."""
        return self._cluster.each(deltas, level_of)

    def _elr_on(self, deltas: Any) -> Any:
        return self._cluster.each(deltas, lambda features: features.is_elr_enabled).astype(np.bool_)

    def _judge_changes(self, changes: PartitionChanges, replay: LogReplay) -> None:
        there = changes.take(np.flatnonzero(changes.flags & HAS))
        if not len(there):
            return
        elr_on, had = self._elr_on(there.deltas), (there.flags & HAD) != 0
        before, after = _states(there, there.before), _states(there, there.after)
        for ruling in partition_rules.state_rulings(after, elr_on):
            self._rule(ruling, after, there.deltas, there.offsets, before)
        records = self._chunk.records
        cleared = np.isin(there.offsets, records.effective[records.kinds == CLEAR_ELR])
        for ruling in partition_rules.change_rulings(before, after, had, elr_on, cleared):
            self._rule(ruling, after, there.deltas, there.offsets, before)

        def first_replicas(topic: int, delta: int) -> int:
            states = self._states_at(replay, int(self._operations[delta]))
            first = np.flatnonzero((states.topics == topic) & (states.partitions == 0))
            return int(states.sizes("replicas")[first].max(initial=0))

        where = elr_on & had & ~cleared
        ruling = elr_rules.elr_ruling(self._cluster, (before, after), where, there.deltas, first_replicas)
        self._rule(ruling, after, there.deltas, there.offsets, before)
        operations = self._operations[changes.deltas]
        count = len(self._chunk.boundaries)
        repeated = changes.repeated or bool((operations != changes.deltas).any())
        merged = attrs.evolve(changes, deltas=operations, repeated=repeated).by_delta()
        ended = merged.take(np.flatnonzero((merged.flags & HAS != 0) & (merged.deltas < count)))
        if not len(ended):
            return
        elr_on, had = self._elr_on(ended.deltas), (ended.flags & HAD) != 0
        before, after = _states(ended, ended.before), _states(ended, ended.after)
        for ruling in service_rules.service_rulings(self._cluster, after, ended.deltas, elr_on):
            self._rule(ruling, after, ended.deltas, ended.offsets, before)
        for ruling in service_rules.election_rulings(self._cluster, before, after, had, ended.deltas):
            self._rule(ruling, after, ended.deltas, ended.offsets, before)

    def _judge_cluster(self) -> None:
        states: dict[int, OtherChange] = {}
        for change in self._chunk.others:
            at = change.delta
            first = (self._end if at == 0 else int(self._chunk.boundaries.offsets[at - 1])) + 1
            for ruling in cluster_rules.change_rulings(change, first):
                self._rule_cluster(ruling, change)
            if cluster_rules.changes_state(change):
                states[int(self._operations[at])] = change
        for change in states.values():
            for ruling in cluster_rules.state_rulings(change.image):
                self._rule_cluster(ruling, change)

    def _moments(self, *, was_open: bool) -> Iterable[tuple[int, OtherChange | None]]:
        """The operations after which all partitions are judged, with the change that makes it so."""
        count, moments = len(self._chunk.boundaries), dict[int, OtherChange | None]()
        if was_open and self._operations[0] < count:
            moments[int(self._operations[0])] = None
        for operation, come, gone, change in self._cluster.turned(self._operations):
            if come or gone:
                moments.setdefault(operation, change)
        for change in self._chunk.others:
            if cluster_rules.changes_min_isr(change) and change.image.features.is_elr_enabled:
                moments.setdefault(int(self._operations[change.delta]), change)
        return sorted((item for item in moments.items() if item[0] < count), key=lambda item: item[0])

    def _judge_all(self, replay: LogReplay, operation: int, change: OtherChange | None) -> None:
        """Judge all partitions as they are after an operation."""
        states = self._states_at(replay, operation)
        deltas = np.full(len(states), operation, np.int64)
        end = int(self._chunk.boundaries.offsets[operation])
        offsets = np.full(len(states), end if change is None else change.offset, np.int64)
        rulings = service_rules.service_rulings(self._cluster, states, deltas, self._elr_on(deltas))
        for ruling in rulings:
            self._rule(ruling, states, deltas, offsets, None)

    def _states_at(self, replay: LogReplay, operation: int) -> PartitionStates:
        """All partitions after an operation."""
        if self._past is None:
            changes = self._chunk.partitions
            self._past = PastStates(replay.store.rows(), changes, self._operations[changes.deltas])
        return self._past.after(operation)

    def _rule(
        self, ruling: Ruling, after: PartitionStates, deltas: Any, offsets: Any, before: PartitionStates | None
    ) -> None:
        """Take a ruling where the property holds by metadata.version."""
        one = PROPERTIES[ruling.name]
        judged = ruling.judged
        if self._cluster.lowest_level < one.since.level:
            judged = judged & (self._levels(deltas) >= one.since.level)
        self._judgement.count(ruling.name, int(judged.sum()))
        for row in np.flatnonzero(judged & ruling.violated).tolist():
            offset, name = int(offsets[row]), after.name(row)
            place = record_at(self._chunk, offset, after, row)
            was = "" if before is None or not len(before.list_of("replicas").take([row]).members) else before.words(row)
            sentence = f"{one.meaning}; it has {after.words(row)}" + (f"; before that {was}" if was else "")
            was_one = None if before is None else before.take(np.array([row]))
            one_state, delta = after.take(np.array([row])), int(deltas[row])
            began = int(np.searchsorted(self._operations, self._operations[delta]))
            bug = bug_of(ruling.name, self._cluster, was_one, one_state, (began - 1, delta))
            self._add(ruling.name, place, offset, name, sentence, bug=bug)

    def _rule_cluster(self, ruling: cluster_rules.ClusterRuling, change: OtherChange) -> None:
        one, level = PROPERTIES[ruling.name], level_of(change.image.features)
        if level < one.since.level:
            return
        self._judgement.count(ruling.name, 1)
        if ruling.fault is not None:
            record = type_of(change.messages[-1]) if change.messages else "REMOVE_TOPIC_RECORD"
            place = Place(change.offset, record)
            sentence = f"{one.meaning}; {ruling.fault}"
            bug = ruling.bug if ruling.bug is not None and ruling.bug.shows_at(level) else None
            self._add(ruling.name, place, change.offset, ruling.thing, sentence, bug=bug)

    def _add(
        self, name: str, place: Place, effective: int, thing: str, sentence: str, *, bug: KnownBug | None = None
    ) -> None:
        violation = Violation(
            name=name,
            offset=place.offset,
            record=place.record,
            thing=thing,
            sentence=f"{thing}: {sentence}.",
            effective_offset=effective,
            known_bug=bug,
        )
        self._judgement.add(violation)


def _states(changes: PartitionChanges, rows: Any) -> PartitionStates:
    return PartitionStates(np.ascontiguousarray(rows), changes.topics, changes.partitions, changes.names, changes.heaps)
