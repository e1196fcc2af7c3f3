"""States of partitions with their intervals, and the rows of `partition_history/` made of them. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels.aot.compiled import run
from kraftlake.kernels.columns.state_columns import fill_columns, fill_members, renumber
from kraftlake.tables.changes.partition_changes import Heaps, Names
from kraftlake.tables.history.columns import ENCODED_STATES, ROW_GROUP_ROWS, STILL_SO, TIMESTAMP
from kraftlake.tables.row_lists import LISTS

_ROOM = 1 << 19
"""The room for states that is asked for at first: what is not used of it takes no memory, growing takes a copy."""


class States(NamedTuple):
    """States of partitions: int64 arrays, and `rows` (int32[n, 14]).

    `topics` are the numbers of topics, `partitions` the partitions' ids; the states begin and end at these offsets and
    times (epoch ms, -1 for none).
    """

    topics: Any
    partitions: Any
    rows: Any
    begins: Any
    begin_times: Any
    ends: Any
    end_times: Any

    @classmethod
    def room(cls, size: int) -> States:
        """Room for a number of states."""
        numbers = np.empty((6, size), np.int64)
        return cls._make([*numbers[:2], np.empty((size, COLUMNS), np.int32), *numbers[2:]])

    def part(self, first: int, last: int) -> States:
        """The states [first, last), as views."""
        return States(*(array[first:last] for array in self))


class GatheredStates:
    """States that are added in turn: they lie in one piece of memory, which grows."""

    def __init__(self) -> None:
        self._states = States.room(0)
        self._count = 0

    def add(self, states: States) -> None:
        """Add states."""
        first, last = self._count, self._count + len(states.topics)
        if last > len(self._states.topics):
            grown = States.room(max(last, 2 * len(self._states.topics), _ROOM))
            for old, new in zip(self._states, grown, strict=True):
                new[:first] = old[:first]
            self._states = grown
        for room, values in zip(self._states, states, strict=True):
            room[first:last] = values
        self._count = last

    def __len__(self) -> int:
        return self._count

    def take(self) -> States:
        """All of them; there are none afterwards."""
        taken = self._states.part(0, self._count)
        self._states, self._count = States.room(0), 0
        return taken


class _Columns(NamedTuple):
    """Room for what `fill_columns` fills."""

    topics: Any
    partitions: Any
    leaders: Any
    leader_epochs: Any
    partition_epochs: Any
    recoveries: Any
    begins: Any
    ends: Any
    begin_times: Any
    end_times: Any
    bounds: Any

    @classmethod
    def room(cls, size: int) -> _Columns:
        """Room for a number of rows."""
        numbers: list[Any] = [np.empty(size, np.int32) for _ in range(6)]
        numbers += [np.empty(size, np.int64) for _ in range(4)]
        return cls._make([*numbers, np.empty((len(LISTS), size + 1), np.int32)])


class StateColumns(NamedTuple):
    """Makes rows of states, on any thread: names, and lists of former states, stay as they are while others follow.

    `compiled` says whether compiled code does the work.
    """

    names: Names
    heaps: Heaps
    compiled: bool

    def tables(self, states: States) -> Iterator[pa.Table]:
        """The rows of states, sorted by where they begin: each table is one row group of a file with its dictionaries.

        A reader of the states at an offset passes over all row groups that begin after it.
        """
        order = np.argsort(states.begins, kind="stable")
        for start in range(0, len(order), ROW_GROUP_ROWS):
            yield self._table(states, order[start : start + ROW_GROUP_ROWS])

    def _table(self, states: States, order: Any) -> pa.Table:
        names, compiled = self.names, self.compiled
        filled, used = _Columns.room(len(order)), np.zeros(len(names.topics), np.uint8)
        still_so, begins_unknown, ends_unknown = run(fill_columns, compiled, states, order, *self.heaps, used, filled)
        topics = np.flatnonzero(used)
        number_of = np.empty(len(used), np.int32)
        number_of[topics] = np.arange(len(topics), dtype=np.int32)
        run(renumber, compiled, filled.topics, number_of)
        numbers, topic = pa.array(topics), pa.array(filled.topics)
        columns = {
            "topic": pa.DictionaryArray.from_arrays(topic, names.topics.take(numbers)),
            "topic_id": pa.DictionaryArray.from_arrays(topic, names.ids.take(numbers)),
            "partition": pa.array(filled.partitions),
            "leader": pa.array(filled.leaders),
            "leader_epoch": pa.array(filled.leader_epochs),
            "partition_epoch": pa.array(filled.partition_epochs),
            "leader_recovery_state": pa.array(filled.recoveries),
            **self._lists(states, order, filled.bounds),
            "valid_from_offset": pa.array(filled.begins),
            "valid_to_offset": pa.array(filled.ends, mask=filled.ends == STILL_SO if still_so else None),
            "valid_from": _times(filled.begin_times, begins_unknown),
            "valid_to": _times(filled.end_times, ends_unknown),
        }
        return pa.table([columns[name] for name in ENCODED_STATES.names], schema=ENCODED_STATES)

    def _lists(self, states: States, order: Any, bounds: Any) -> dict[str, pa.Array]:
        ends = np.cumsum(bounds[:, -1], dtype=np.int64)
        starts, members = ends - bounds[:, -1], np.empty(int(ends[-1]), np.int32)
        run(fill_members, self.compiled, states.rows, order, *self.heaps, bounds, starts, members)
        columns = {}
        for name, which in LISTS.items():
            values = pa.array(members[starts[which] : ends[which]])
            if name == "directories":
                values = pa.DictionaryArray.from_arrays(values, self.names.directories)
            columns[name] = pa.ListArray.from_arrays(pa.array(bounds[which]), values)
        return columns


def _times(times_us: Any, unknown: int) -> pa.Array:
    """Epoch microseconds as timestamps; `unknown` of them are negative, and become nulls."""
    return pa.array(times_us, mask=times_us < 0 if unknown else None).cast(TIMESTAMP)
