"""The base of a bulk replay and its state so far, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kraftlake.kernels.language import (
        Bytes,
        BytesOut,
        HashesOut,
        Ids,
        IdsOut,
        IntRows,
        IntRowsOut,
        Ints,
        IntsOut,
        LongsOut,
    )

ABSENT = -2
"""The shape of a row whose partition is gone, as its topic began anew; its numbers are 0."""
LONGEST = 32
"""Elements of a list for which there is room at first."""
TOUCHED, DIRECTORIES_WRITTEN = 1, 2
UNCLEAN, ELIGIBLE, OF, ID = range(4)
"""The columns of `touched` and `fresh`: unclean elections, elections from the ELR, what it is of, partition id.

A touched row is of a row of the base, a fresh one of a topic; only that has an id.
"""
DONE, STOPPED, GROW, OTHER = range(4)
"""The results of replaying a record. GROW: an array has to grow first; OTHER: a slower path has to replay it.

STOPPED: the record is a mark of a transaction, contradicts the state, or is not written as our own codec does it.
"""
GONE, ALIVE, ANEW, AGAIN = range(4)
"""The state of a topic.

ANEW: a TopicRecord of a topic that exists has taken its partitions away; AGAIN: the topic was removed, and then created
with the same id and name.
"""
HOMES = 1024
BLOCK = 64
"""The number of records looked up ahead of their replay, so that the memory that they need comes in together."""

# `counts`: how much of the growing arrays is in use
N_TOUCHED, N_FRESH, N_TOPICS, N_HEAP, N_DIRECTORIES, N_NAMES, N_ODD, N_OTHERS, N_VERSIONS = range(9)
LONGEST_LIST, ROWS_NEEDED, VERSIONS_NEEDED, IS_CHECKED, HAS_CLEARED_ELR, HAS_TAKEN_NAMES = range(9, 15)
"""The room that a record lacks; and flags.

IS_CHECKED: the object codec has written the values; HAS_CLEARED_ELR: there was a ClearElrRecord; HAS_TAKEN_NAMES: a new
topic has the name of one that exists, as a snapshot may give it.
"""
COUNTS = 15


class Base(NamedTuple):
    """The base of the change; read only. `ids` is uint64[T, 2]; `index` finds topics by id (see `index_ids`)."""

    rows: IntRows
    starts: Ints
    heap: Ints
    ids: Ids
    index: Ints
    sparse: Bytes


class State(NamedTuple):
    """The state of the change so far.

    Rows of the base that change are touched: `touched_rows` has what they are now, `touched` their numbers and
    elections, `touched_flags` flags, and `slots` (one a row of the base) 1 + the place among these. Once they are
    many, all rows are touched, in their order, without `slots` and numbers. New partitions have `fresh_rows`,
    `fresh` and `fresh_flags`. Topics of the base come first in `alive` and `sizes`; new ones, by T + place, have
    ids in `ids` and their first fresh row in `firsts`. `begins` has by topic its first fresh row. `names` has the
    names of all topics, with a byte behind each, and `name_ends` by topic where its name ends. `odd` (int32[n, 3])
    has topic, partition and place of each partition that does not stand where its id says, `odd_index` finds them.
    `lists`, `lengths`, `before`, `before_lengths`, `numbers`, `hints` (int32[3, BLOCK]) and `row` (int32[1,
    COLUMNS]) are room to work in; `homes` (int32[HOMES]) has the number of a directory in which a broker's replica
    was seen, by broker id modulo HOMES.
    """

    counts: LongsOut
    slots: IntsOut
    touched: IntRowsOut
    touched_flags: BytesOut
    touched_rows: IntRowsOut
    fresh: IntRowsOut
    fresh_flags: BytesOut
    fresh_rows: IntRowsOut
    odd: IntRowsOut
    odd_index: IntsOut
    alive: BytesOut
    sizes: IntsOut
    ids: IdsOut
    index: IntsOut
    firsts: IntsOut
    begins: IntsOut
    names: BytesOut
    name_ends: LongsOut
    name_hashes: HashesOut
    name_topics: IntsOut
    heap: IntsOut
    directories: IdsOut
    directory_index: IntsOut
    lists: IntRowsOut
    lengths: LongsOut
    before: IntRowsOut
    before_lengths: LongsOut
    numbers: IntsOut
    hints: IntRowsOut
    homes: IntsOut
    row: IntRowsOut
