"""Events that compiled code finds and puts into words, against those of the objects."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

from kraftlake.image import LeaderRecoveryState, PartitionRegistration
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.image.topics.partition_rows import RowWriter
from kraftlake.kernels import event_kinds
from kraftlake.records.uuid import Uuid
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.events import partition_event_table
from kraftlake.tables.events.event_table import merged, table_of_events
from kraftlake.tables.events.partition_event_columns import Partitions, States, bytes_of, events_among
from kraftlake.tables.events.partition_event_table import Changed, Singles, table_of_partitions
from kraftlake.tables.events.partition_events import PARTITION_EVENTS, Hosts, event_row, partition_events, topic_created

NAMES = ["foo", "", "größe", "a-b.c_" * 40]
BROKERS = st.sampled_from([0, 1, 2, 9, 10, 123, 2**31 - 1, -7, -(2**31)])
LISTS = st.lists(BROKERS, max_size=5)


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


def changed(pairs: Sequence[tuple[PartitionRegistration, PartitionRegistration]], base: int) -> Changed:
    """Partition i of a topic each; the lists of the first `base` of them lie in the base's heap."""
    writer, rows = RowWriter([Uuid.ZERO], 0), []
    base_heap = 0
    for number, pair in enumerate(pairs):
        base_heap = len(writer.heap) if number == base else base_heap
        rows.append([writer.row(state) for state in pair])
    heap, both = np.array(writer.heap, np.int32), np.array(rows, np.int32).reshape(-1, 2, 14)
    before, after = (np.ascontiguousarray(both[:, side]) for side in (0, 1))
    states = States(before, after, heap[:base_heap], heap[base_heap:])
    names = pa.array(NAMES, pa.string())
    numbers = np.arange(len(pairs), dtype=np.int64) % len(NAMES)
    partitions = Partitions(numbers, np.arange(len(pairs), dtype=np.int32), *bytes_of(names))
    return Changed(states, partitions, names, pa.array([f"id of {name}" for name in NAMES], pa.string()))


@given(
    pairs=st.lists(pairs_of_states(), max_size=12),
    base=st.integers(0, 12),
    singles=st.lists(st.integers(0, 30), max_size=4).map(sorted),
)
def test_rows_are_those_of_the_objects_with_single_events_among_them(
    pairs: list[tuple[PartitionRegistration, PartitionRegistration]], base: int, singles: list[int]
) -> None:
    given_ = changed(pairs, base)
    order = np.arange(len(pairs))[::-1].copy()
    found = events_among(given_.states, order)
    places = np.minimum(np.array(singles, np.int64), len(found.places))
    events = [topic_created(f"neü{number}", "x" * number, "0 partitions") for number in range(len(singles))]
    heads = DeltaBoundaries(offsets=np.array([7]), epochs=np.array([1], np.int32), times=np.array([-1]))
    rows = order[found.places]
    none = np.zeros(len(rows), np.int64)
    among = Singles(events, np.zeros(len(events), np.int64), places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_event_table, "_ROWS_AT_ONCE", 5)
        table, deltas = table_of_partitions(given_, found._replace(places=rows), none, among, heads)
    expected = [
        event_row(event, NAMES[place % len(NAMES)], f"id of {NAMES[place % len(NAMES)]}", place)
        for place in order.tolist()
        for event in partition_events(*pairs[place])
    ]
    objects = table_of_events(expected, none, heads)
    assert len(deltas) == len(expected) + len(events)
    one_by_one = table_of_events(events, among.deltas, heads)
    plain = pa.schema([field.with_type(pa.string()) if _is_text(field) else field for field in objects.schema])
    whole = merged(objects, np.arange(len(expected)), one_by_one, places - 1)
    assert table.cast(plain).equals(whole.cast(plain))
    table.validate(full=True)


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_dictionary(field.type))


def test_every_kind_of_event_has_its_words() -> None:
    kinds = {value for name, value in vars(event_kinds).items() if name.isupper() and name != "MOST"}
    assert {*PARTITION_EVENTS} == kinds == {*range(len(kinds))}
