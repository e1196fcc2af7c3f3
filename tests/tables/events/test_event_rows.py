"""Rows of events of partitions, made once for each distinct change, against those made of objects one by one."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.topics.partition_registration import NO_LEADER, LeaderRecoveryState, PartitionRegistration
from kraftlake.image.topics.partition_rows import RowWriter
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.delta_chunk import DeltaBoundaries
from kraftlake.replay.log.partition_changes import HAD, HAS, Heaps, Names, PartitionChanges
from kraftlake.tables.events import event_rows as made
from kraftlake.tables.events.distinct_changes import distinct_changes
from kraftlake.tables.events.event_rows import SingleEvents, event_rows
from kraftlake.tables.events.events_table import ENCODED_EVENTS, EVENTS
from kraftlake.tables.row_buffer import table_of_rows
from tests.tables.events.reference import Hosts, event_row, partition_events, topic_created

NAMES = ["foo", "", "größe", "a-b.c_" * 40]
IDS = [f"id of {name}" for name in NAMES]
BROKERS = st.sampled_from([0, 1, 2, 9, 10, 123, 2**31 - 1, -7, -(2**31)])
LISTS = st.lists(BROKERS, max_size=5)
BOUNDARIES = DeltaBoundaries(
    offsets=np.array([7, 8]), epochs=np.array([1, 1], np.int32), times=np.array([-1, 1], np.int64)
)
ENDS = [(7, 1, None), (8, 1, 1000)]
"""The same as rows have it: offset, epoch, and time in microseconds."""


@st.composite
def registrations(draw: st.DrawFn) -> PartitionRegistration:
    replicas = tuple(draw(LISTS))
    return PartitionRegistration(
        replicas=replicas,
        directories=(Uuid.ZERO,) * len(replicas),
        isr=tuple(draw(LISTS)),
        adding_replicas=tuple(draw(st.lists(st.sampled_from(replicas or (1,)), max_size=2))),
        removing_replicas=tuple(draw(st.lists(st.sampled_from(replicas or (1,)), max_size=2))),
        elr=tuple(draw(st.lists(BROKERS, max_size=2))),
        leader=draw(BROKERS | st.just(NO_LEADER)),
        leader_recovery_state=draw(st.sampled_from(LeaderRecoveryState)),
        leader_epoch=0,
        partition_epoch=0,
    )


@st.composite
def pairs_of_states(draw: st.DrawFn) -> tuple[PartitionRegistration, PartitionRegistration]:
    """Any two, or one and what may come of it: only the leader is another, or a reassignment has ended."""
    before = draw(registrations())
    hosts = Hosts(before.replicas, before.adding_replicas, before.removing_replicas)
    replicas = tuple(draw(st.sampled_from((before.replicas, hosts.stay, hosts.arrive)).flatmap(st.permutations)))
    ended = attrs.evolve(
        before,
        replicas=replicas,
        directories=(Uuid.ZERO,) * len(replicas),
        adding_replicas=(),
        removing_replicas=(),
    )
    after = st.one_of(registrations(), st.just(ended), BROKERS.map(lambda leader: attrs.evolve(before, leader=leader)))
    return before, draw(after)


def changes_of(pairs: Sequence[tuple[PartitionRegistration, PartitionRegistration]], base: int) -> PartitionChanges:
    """Partition i of a topic each; the lists of the first `base` of them lie in the base's heap."""
    writer, rows = RowWriter([Uuid.ZERO], 0), []
    base_heap = 0
    for number, pair in enumerate(pairs):
        base_heap = len(writer.heap) if number == base else base_heap
        rows.append([writer.row(state) for state in pair])
    heap, both = np.array(writer.heap, np.int32), np.array(rows, np.int32).reshape(-1, 2, COLUMNS)
    numbers = np.arange(len(pairs), dtype=np.int64)
    changes = PartitionChanges.of_one_delta(
        partitions=numbers.astype(np.int32),
        topics=(numbers % len(NAMES)).astype(np.int32),
        before=both[:, 0],
        after=both[:, 1],
        flags=np.full(len(pairs), HAD | HAS, np.uint8),
        names=Names(pa.array(NAMES), pa.array(IDS), pa.array([], pa.string())),
        heaps=Heaps(heap[:base_heap], heap[base_heap:]),
    )
    return attrs.evolve(changes, deltas=numbers % 2)


@given(
    pairs=st.lists(pairs_of_states(), max_size=12).flatmap(lambda some: st.permutations(some + some[:3])),
    base=st.integers(0, 12),
    singles=st.lists(st.integers(-1, 20), max_size=4).map(sorted),
    at_once=st.integers(1, 20),
)
def test_rows_are_those_of_the_objects_with_single_events_among_them(
    pairs: list[tuple[PartitionRegistration, PartitionRegistration]], base: int, singles: list[int], at_once: int
) -> None:
    events = [topic_created(f"neü{number}", "x" * number, "0 partitions") for number in range(len(singles))]
    ranks, ones = np.arange(len(pairs)), np.ones(len(events), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "_CHANGES_AT_ONCE", at_once)
        single = SingleEvents(events, ones, np.array(singles, np.int64))
        table = event_rows(changes_of(pairs, base), np.arange(len(pairs)), ranks, single, BOUNDARIES)
    expected = [
        (place, 0, place % 2, event_row(event, NAMES[place % len(NAMES)], IDS[place % len(NAMES)], place))
        for place, pair in enumerate(pairs)
        for event in partition_events(*pair)
    ]
    expected += [(rank, 1, 1, event) for rank, event in zip(singles, events, strict=True)]
    expected.sort(key=lambda row: row[:2])
    one_by_one = [(*ENDS[delta], *event) for _, _, delta, event in expected]
    assert table.to_pylist() == table_of_rows(one_by_one, EVENTS.schema).to_pylist()
    assert table.schema.equals(ENCODED_EVENTS)
    table.validate(full=True)


@pytest.mark.parametrize("base", [0, 2, 3])
@pytest.mark.parametrize("replicas", [(1, 2), (1, 2, 3, 4)])
def test_equal_changes_of_partitions_are_described_once_wherever_their_lists_lie(
    replicas: tuple[int, ...], base: int
) -> None:
    """Epochs tell no changes apart."""
    state = PartitionRegistration(
        replicas=replicas, directories=(Uuid.ZERO,) * len(replicas), isr=replicas, leader=1,
        leader_recovery_state=LeaderRecoveryState.RECOVERED, leader_epoch=0, partition_epoch=0,
    )  # fmt: skip
    other = attrs.evolve(state, isr=replicas[1:])
    later = [attrs.evolve(one, leader_epoch=5, partition_epoch=9) for one in (state, other)]
    changes = changes_of([(other, state), (state, other), (later[0], later[1])], base)
    some, numbers = distinct_changes(changes, np.arange(len(changes)))
    assert len(some) == (3 if base == 2 and len(replicas) > 3 else 2), "the two heaps are not compared"
    assert np.array_equal(numbers[some], np.arange(len(some)))
    assert numbers[0] != numbers[1]
