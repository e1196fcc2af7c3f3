"""The journal of a replay: what each record has made of its partition."""

from __future__ import annotations

from kraftlake.kernels.language import BytesOut, Int64, IntRows, IntRowsOut, Ints, IntsOut, compiled, inlined
from kraftlake.kernels.partition_row import HEAP_LISTS, SHAPE
from kraftlake.kernels.replay import change_state as change
from kraftlake.kernels.replay.change_state import Base, State
from kraftlake.kernels.replay.journal import DID_ELIGIBLE, DID_END, DID_UNCLEAN, NO_PLACE, Journal
from kraftlake.kernels.replay.partition_records import copy_place, is_there
from kraftlake.kernels.replay.row_lists import slot_of


@inlined
def _take(flags: BytesOut, info: IntRowsOut, r: Int64) -> Int64:
    """Take the note of the last record on a row, in the journal's form."""
    did: Int64 = flags[r] & change.DIRECTORIES_WRITTEN
    if info[r, change.UNCLEAN] > 0:
        did |= DID_UNCLEAN
    if info[r, change.ELIGIBLE] > 0:
        did |= DID_ELIGIBLE
    flags[r] &= change.TOUCHED
    info[r, change.UNCLEAN] = info[r, change.ELIGIBLE] = 0
    return did


@inlined
def take_did(place: Int64, base: Base, state: State) -> Int64:
    """Take the other effects of the last record on the partition at a place."""
    if place >= len(base.rows):
        return _take(state.fresh_flags, state.fresh, place - len(base.rows))
    return _take(state.touched_flags, state.touched, slot_of(place, state))


@inlined
def note_before(made: Int64, place: Int64, base: Base, state: State, journal: Journal) -> None:
    """Note what the partition at a place is before the record that makes version `made`."""
    if is_there(place, base, state):
        copy_place(place, base, state, journal.before, made)
    else:
        copy_place(NO_PLACE, base, state, journal.before, made)


@inlined
def note_version(
    made: Int64, i: Int64, place: Int64, did: Int64, base: Base, state: State, journal: Journal
) -> None:  # fmt: skip
    """Note what value i has made of the partition at a place; what it was before is noted already."""
    copy_place(NO_PLACE if did & DID_END else place, base, state, journal.after, made)
    journal.records[made], journal.places[made], journal.did[made] = i, place, did
    state.counts[change.N_VERSIONS] = made + 1


@compiled
def heap_size(rows: IntRows, heap: Ints) -> Int64:
    """The size, in numbers, of the lists that the rows have in the heap."""
    size: Int64 = 0
    for r in range(len(rows)):
        if rows[r, SHAPE] < 0:
            size += _lists_size(heap, rows[r, 0])
    return size


@inlined
def _lists_size(heap: Ints, at: Int64) -> Int64:
    """The size, in numbers, of the lists in the heap from `at` on."""
    size: Int64 = HEAP_LISTS
    for which in range(HEAP_LISTS):
        size += heap[at + which]
    return size


@compiled
def move_lists(rows: IntRowsOut, heap: Ints, into: IntsOut) -> None:
    """Copy the lists of the rows that have theirs in the heap, one row after the other, into another one."""
    to: Int64 = 0
    for r in range(len(rows)):
        if rows[r, SHAPE] >= 0:
            continue
        at: Int64 = rows[r, 0]
        rows[r, 0] = to
        size = _lists_size(heap, at)
        for i in range(size):
            into[to + i] = heap[at + i]
        to += size
