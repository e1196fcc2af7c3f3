"""The effect of records of a whole topic on its partitions: its end, a new beginning, no eligible leader replicas."""

from __future__ import annotations

from kraftlake.kernels.language import Bool, Int64, inlined
from kraftlake.kernels.partition_row import COLUMNS, HEAP_LISTS, LEADER, RARE, SHAPE
from kraftlake.kernels.replay import change_state as change
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.kernels.replay.journal import DID_END, Journal
from kraftlake.kernels.replay.partition_journal import note_before, note_version, take_did
from kraftlake.kernels.replay.partition_records import is_there, lacks_room, load_place, put_place, shape_at
from kraftlake.kernels.replay.row_lists import change_epochs, store_row


@inlined
def _of_base(topic: Int64, base: Base) -> Int64:
    """The number of partitions of a topic in the base."""
    return base.starts[topic + 1] - base.starts[topic] if topic < len(base.ids) else 0


@inlined
def _forget(place: Int64, base: Base, state: State) -> None:
    """Make the row at a place that of a partition which is gone."""
    for column in range(COLUMNS):
        state.row[0, column] = 0
    state.row[0, SHAPE] = change.ABSENT
    put_place(place, change.TOUCHED, base, state)
    take_did(place, base, state)


@inlined
def _end_partition(
    i: Int64, place: Int64, noted: Bool, forgotten: Bool, base: Base, state: State, journal: Journal
) -> None:
    if noted and is_there(place, base, state):
        made = state.counts[change.N_VERSIONS]
        note_before(made, place, base, state, journal)
        note_version(made, i, place, DID_END, base, state, journal)
    if forgotten:
        _forget(place, base, state)


@inlined
def end_partitions(
    i: Int64, topic: Int64, noted: Bool, forgotten: Bool, base: Base, state: State, journal: Journal
) -> Int64:
    """End all partitions of a topic: `noted` as versions in the journal, `forgotten` in the rows; or GROW."""
    of_base = _of_base(topic, base)
    if noted and state.counts[change.N_VERSIONS] + state.sizes[topic] > len(journal.records):
        state.counts[change.VERSIONS_NEEDED] = state.counts[change.N_VERSIONS] + state.sizes[topic]
        return change.GROW
    needed: Int64 = min(state.counts[change.N_TOUCHED] + of_base, len(base.rows))
    if forgotten and needed > len(state.touched):
        state.counts[change.ROWS_NEEDED] = needed
        return change.GROW
    if of_base > 0:
        for place in range(base.starts[topic], base.starts[topic + 1]):
            _end_partition(i, place, noted, forgotten, base, state, journal)
    left: Int64 = state.sizes[topic] - of_base
    r: Int64 = state.begins[topic]
    while left > 0 and r < state.counts[change.N_FRESH]:
        if state.fresh[r, change.OF] == topic:
            _end_partition(i, len(base.rows) + r, noted, forgotten, base, state, journal)
            left -= 1
        r += 1
    return change.DONE


@inlined
def _clear_place(i: Int64, place: Int64, base: Base, state: State, journal: Journal) -> Int64:
    """Clear the eligible leader replicas of the partition at a place; or GROW."""
    if shape_at(place, base, state) != RARE:
        return change.DONE
    if not load_place(place, base, state):
        return change.GROW
    if state.before_lengths[5] == 0 and state.before_lengths[6] == 0:
        return change.DONE
    if lacks_room(place, base, state):
        return change.GROW
    made = state.counts[change.N_VERSIONS]
    noted: Bool = len(journal.records) > 0
    if noted:
        if made >= len(journal.records):
            state.counts[change.VERSIONS_NEEDED] = made + 1
            return change.GROW
        note_before(made, place, base, state, journal)
    for which in range(HEAP_LISTS):
        state.lengths[which] = state.before_lengths[which] if which < 5 else 0
        for at in range(state.lengths[which]):
            state.lists[which, at] = state.before[which, at]
    change_epochs(state.row, 0, -2)
    for column in range(4):
        state.numbers[column] = state.row[0, LEADER + column]
    store_row(base, state)
    put_place(place, change.TOUCHED, base, state)
    if noted:
        note_version(made, i, place, 0, base, state, journal)
    return change.DONE


@inlined
def clear_partitions(i: Int64, topic: Int64, base: Base, state: State, journal: Journal) -> Int64:
    """Clear the eligible leader replicas of the partitions of a topic, or (-1) of all; or GROW, and go on after it."""
    status: Int64 = change.DONE
    first: Int64 = 0
    last: Int64 = len(base.ids)
    if topic >= 0:
        first, last = min(topic, last), min(topic + 1, last)
    for number in range(first, last):
        if state.alive[number]:
            for place in range(base.starts[number], base.starts[number + 1]):
                status = _clear_place(i, place, base, state, journal)
                if status != change.DONE:
                    return status
    for r in range(state.counts[change.N_FRESH]):
        if state.alive[state.fresh[r, change.OF]] and (topic < 0 or state.fresh[r, change.OF] == topic):
            status = _clear_place(i, len(base.rows) + r, base, state, journal)
            if status != change.DONE:
                return status
    return change.DONE
