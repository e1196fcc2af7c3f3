"""What changed rows mean to every broker, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.change_state import DIRECTORIES_WRITTEN, N_FRESH, N_TOUCHED, TOUCHED
from kraftlake.kernels.compiled import compiled, inlined
from kraftlake.kernels.local_changes import place_of
from kraftlake.kernels.row_lists import LEADER, all_migrating, load_row

DELETES, LEADERS, ELECTED, FOLLOWERS, DIRECTORIES, DELETED_ROWS = range(6)
KINDS = 6


@inlined
def _note(brokers: Any, broker: int, kind: int, place: int, ends: Any, found: Any) -> None:
    """Count an entry, and where `found` has room for all of them, put it there: `ends` says where the next one goes."""
    slot = KINDS * np.searchsorted(brokers, broker) + kind
    if len(found):
        found[ends[slot]] = place
    ends[slot] += 1


@compiled
def local_changes_all(base: Any, state: Any, patched: Any, brokers: Any, ends: Any, found: Any) -> None:
    """What the touched and fresh rows mean to each of `brokers` (int32, sorted): see `local_changes`.

    Entries of broker number b and one of the KINDS k belong together, as k + KINDS b of `ends`: with an empty `found`
    they are counted there; a second call, with the first place of each in `ends`, writes them to `found` (int32).
    """
    touched = state.counts[N_TOUCHED]
    lists, lengths, before, before_lengths = state.lists, state.lengths, state.before, state.before_lengths
    for k in range(touched + state.counts[N_FRESH]):
        fresh = k >= touched
        r = k - touched if fresh else k
        info = state.fresh_info if fresh else state.touched_info
        rows = state.fresh_rows if fresh else state.touched_rows
        if not info[r, 0] & TOUCHED:
            continue
        topic = state.fresh_topics[r] if fresh else np.searchsorted(base.starts, state.touched[r], side="right") - 1
        if not state.alive[topic]:
            continue
        load_row(rows, r, base.heap, state.heap, lists, lengths)
        before_lengths[0] = 0
        epoch_changed = leader_epoch_changed = both_migrating = written = True
        if not fresh:
            old_rows = patched if r < len(patched) else base.rows
            old = r if r < len(patched) else state.touched[r]
            load_row(old_rows, old, base.heap, state.heap, before, before_lengths)
            leader_epoch_changed = old_rows[old, LEADER + 1] != rows[r, LEADER + 1]
            epoch_changed = old_rows[old, LEADER + 2] != rows[r, LEADER + 2]
            both_migrating = all_migrating(lists, lengths) and all_migrating(before, before_lengths)
            written = (info[r, 0] & DIRECTORIES_WRITTEN) != 0
        for place in range(lengths[0]):
            broker = lists[0, place]
            if place_of(lists, lengths, broker) != place:
                continue  # named twice
            if epoch_changed and rows[r, LEADER] != broker:
                _note(brokers, broker, FOLLOWERS, k, ends, found)
            elif epoch_changed:
                _note(brokers, broker, LEADERS, k, ends, found)
                if leader_epoch_changed:
                    _note(brokers, broker, ELECTED, k, ends, found)
            old_place = -1 if fresh else place_of(before, before_lengths, broker)
            if fresh or (old_place >= 0 and not both_migrating and (written or old_place != place)):
                _note(brokers, broker, DIRECTORIES, k, ends, found)
        for place in range(before_lengths[0]):
            broker = before[0, place]
            gone = place_of(lists, lengths, broker) < 0 and place_of(before, before_lengths, broker) == place
            if gone:
                _note(brokers, broker, DELETES, k, ends, found)


@compiled
def deleted_rows_all(rows: Any, dead: Any, base: Any, state: Any, brokers: Any, ends: Any, found: Any) -> None:
    """Add the rows of the topics `dead` of the base, as DELETED_ROWS, in the same way."""
    for topic in dead:
        for r in range(base.starts[topic], base.starts[topic + 1]):
            load_row(rows, r, base.heap, state.heap, state.lists, state.lengths)
            for place in range(state.lengths[0]):
                broker = state.lists[0, place]
                if place_of(state.lists, state.lengths, broker) == place:
                    _note(brokers, broker, DELETED_ROWS, r, ends, found)
