"""States of partitions with their intervals, and the rows of `partition_history/` made of them. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.replay.log.partition_changes import Heaps, Names
from kraftlake.tables.history.history_columns import ENCODED_STATES, ROW_GROUP_ROWS, STILL_SO, times_of
from kraftlake.tables.state_arrays import state_arrays

NO_RACK: Final = -1
"""The number in place of a rack where there is none."""


class States(NamedTuple):
    """States of partitions: arrays of integers, and `rows` (int32[n, 14]).

    `topics` are the numbers of topics, `partitions` the partitions' ids; the states begin and end at these offsets and
    times (epoch ms, -1 for none). `racks` (int32) are the numbers of the leaders' racks, NO_RACK for none.
    """

    topics: Any
    partitions: Any
    rows: Any
    begins: Any
    begin_times: Any
    ends: Any
    end_times: Any
    racks: Any


class StateColumns(NamedTuple):
    """Makes rows of states, on any thread: names and lists of earlier states don't change when others follow."""

    names: Names
    heaps: Heaps
    racks: pa.Array
    """The names of racks, by number."""

    def tables(self, parts: Sequence[States]) -> Iterator[pa.Table]:
        """The rows of states, at least one part, sorted by their start.

        Each table is one row group of a file, with its dictionaries. A reader of the states at an offset skips all row
        groups that begin after the offset.
        """
        states = States(*map(np.concatenate, zip(*parts, strict=True)))
        order = np.argsort(states.begins, kind="stable")
        for start in range(0, len(order), ROW_GROUP_ROWS):
            some = order[start : start + ROW_GROUP_ROWS]
            yield self._table(States(*(array[some] for array in states)))

    def _table(self, states: States) -> pa.Table:
        names = self.names
        used = np.zeros(len(names.topics), np.bool_)
        used[states.topics] = True
        numbers = pa.array(np.flatnonzero(used))
        topic = pa.array((np.cumsum(used, dtype=np.int32) - np.int32(1))[states.topics])
        columns = {
            "topic": pa.DictionaryArray.from_arrays(topic, names.topics.take(numbers)),
            "topic_id": pa.DictionaryArray.from_arrays(topic, names.ids.take(numbers)),
            "partition": pa.array(states.partitions.astype(np.int32)),
            **state_arrays(
                states.rows, self.heaps, lambda places: pa.DictionaryArray.from_arrays(places, names.directories)
            ),
            "leader_rack": pa.DictionaryArray.from_arrays(
                pa.array(states.racks, mask=states.racks == NO_RACK), self.racks
            ),
            "valid_from_offset": pa.array(states.begins),
            "valid_to_offset": pa.array(states.ends, mask=states.ends == STILL_SO),
            "valid_from": times_of(states.begin_times),
            "valid_to": times_of(states.end_times),
        }
        return pa.table([columns[name] for name in ENCODED_STATES.names], schema=ENCODED_STATES)
