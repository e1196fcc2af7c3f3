"""What a bulk replay begins with and what it has made so far, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

LONGEST = 1024
"""Elements of a list that the kernels take."""
TOUCHED, DIRECTORIES_WRITTEN = 1, 2
DONE, STOPPED, GROW, OTHER = range(4)
"""The results of replaying a record. GROW: an array has to grow first; OTHER: a slower path has to replay it."""
HOMES = 1024
BLOCK = 64
"""How many records are looked up ahead of their replay, so that the memory that they need comes in together."""

# `counts`: how much of the growing arrays is in use
N_TOUCHED, N_FRESH, N_TOPICS, N_HEAP, N_DIRECTORIES, N_NAMES, N_ODD, N_OTHERS = range(8)
COUNTS = 8


class Base(NamedTuple):
    """What the change begins with; read only. `ids` is uint64[T, 2]; `index` finds topics by id (see `index_ids`)."""

    rows: Any
    starts: Any
    heap: Any
    ids: Any
    index: Any
    sparse: Any


class State(NamedTuple):
    """What the change has made so far.

    Changed rows of the base are held in one of two ways. Sparse, while they are few: `touched` has their numbers,
    `touched_rows` what they are now, and `slots` (one a row of the base) 1 + the place among these. Dense: `dense_rows`
    is a copy of all rows, changed in place, with flags in `dense_flags` and elections in `dense_elections`; what is
    sparse is empty then (`BulkChange.gathered` makes it for those who ask). Topics of the base come first in
    `alive` and `sizes`; new ones, by T + place, have ids in `ids` and their first fresh row in `firsts`.
    `touched_info` and `fresh_info` are flags, unclean elections, elections from the ELR. `lists`, `lengths`, `before`,
    `before_lengths`, `numbers` and `hints` (int32[3, BLOCK]) are room to work in; `homes` (int32[HOMES]) has the number
    of a directory in which a broker's replica was seen, by broker id modulo HOMES.
    """

    counts: Any
    slots: Any
    touched: Any
    touched_rows: Any
    touched_info: Any
    dense_rows: Any
    dense_flags: Any
    dense_elections: Any
    fresh_rows: Any
    fresh_topics: Any
    fresh_partitions: Any
    fresh_info: Any
    fresh_index: Any
    alive: Any
    sizes: Any
    ids: Any
    index: Any
    firsts: Any
    names: Any
    name_hashes: Any
    name_topics: Any
    heap: Any
    directories: Any
    directory_index: Any
    lists: Any
    lengths: Any
    before: Any
    before_lengths: Any
    numbers: Any
    hints: Any
    homes: Any
