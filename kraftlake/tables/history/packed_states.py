"""States of partitions that are packed as rows, and what makes them rows of `partition_history/`.

Imports numpy and numba.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.delta.topics.journaled_change import Origins
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels.columns.state_columns import fill_columns, fill_members, renumber
from kraftlake.tables.history.columns import ENCODED_STATES, ROW_GROUP_ROWS, STILL_SO, TIMESTAMP
from kraftlake.tables.row_lists import LISTS

_ROOM = 1 << 19
"""Room for so many states is asked for at first: what is not used of it takes no memory, growing takes a copy."""


class States(NamedTuple):
    """States by place, with their rows and the offsets and times (int64) at which they begin and end."""

    places: Any
    rows: Any
    begins: Any
    begin_times: Any
    ends: Any
    end_times: Any

    @classmethod
    def room(cls, size: int) -> States:
        """Room for so many."""
        return cls(np.empty(size, np.int64), np.empty((size, COLUMNS), np.int32), *np.empty((4, size), np.int64))

    def part(self, first: int, last: int) -> States:
        """The states [first, last), as views."""
        return States(*(array[first:last] for array in self))


class GatheredStates:
    """States that come one after the other: they lie in one piece of memory, which grows."""

    def __init__(self) -> None:
        self._states = States.room(0)
        self._count = 0

    def room(self, size: int) -> States:
        """Where the next states go, so many at most."""
        needed = self._count + size
        if needed > len(self._states.places):
            grown = States.room(max(needed, 2 * len(self._states.places), _ROOM))
            for old, new in zip(self._states, grown, strict=True):
                new[: self._count] = old[: self._count]
            self._states = grown
        return self._states.part(self._count, needed)

    def keep(self, count: int) -> None:
        """So many of what was written where `room` said are states."""
        self._count += count

    def take(self) -> States:
        """All of them; there are none afterwards."""
        taken = self._states.part(0, self._count)
        self._states, self._count = States.room(0), 0
        return taken


class _Columns(NamedTuple):
    """Room for what `fill_columns` tells."""

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
        """Room for so many rows."""
        numbers: list[Any] = [np.empty(size, np.int32) for _ in range(6)]
        numbers += [np.empty(size, np.int64) for _ in range(4)]
        return cls._make([*numbers, np.empty((len(LISTS), size + 1), np.int32)])


@attrs.frozen(kw_only=True, eq=False)
class InColumns:
    """Makes rows of states, on any thread: places and lists of former states stay what they are while others follow.

    `heaps` are that of the base of a change and what came behind it; `names`, `ids` and `directories` (string arrays)
    those of topics and directories by number.
    """

    origins: Origins
    heaps: tuple[Any, Any]
    names: pa.Array
    ids: pa.Array
    directories: pa.Array

    def tables(self, states: States) -> Iterator[pa.Table]:
        """States sorted by where they begin, as rows: each table one row group of a file, with dictionaries of its own.

        Whoever looks for what was so at an offset passes over all row groups that begin behind it.
        """
        order = np.argsort(states.begins, kind="stable")
        for start in range(0, len(order), ROW_GROUP_ROWS):
            yield self._table(states, order[start : start + ROW_GROUP_ROWS])

    def _table(self, states: States, order: Any) -> pa.Table:
        filled, used = _Columns.room(len(order)), np.zeros(len(self.names), np.uint8)
        still_so, begins_unknown, ends_unknown = fill_columns(states, order, self.origins, *self.heaps, used, filled)
        topics = np.flatnonzero(used)
        number_of = np.empty(len(used), np.int32)
        number_of[topics] = np.arange(len(topics), dtype=np.int32)
        renumber(filled.topics, number_of)
        numbers, topic = pa.array(topics), pa.array(filled.topics)
        columns = {
            "topic": pa.DictionaryArray.from_arrays(topic, self.names.take(numbers)),
            "topic_id": pa.DictionaryArray.from_arrays(topic, self.ids.take(numbers)),
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
        fill_members(states.rows, order, *self.heaps, bounds, starts, members)
        columns = {}
        for name, which in LISTS.items():
            values = pa.array(members[starts[which] : ends[which]])
            if name == "directories":
                values = pa.DictionaryArray.from_arrays(values, self.directories)
            columns[name] = pa.ListArray.from_arrays(pa.array(bounds[which]), values)
        return columns


def _times(times_us: Any, unknown: int) -> pa.Array:
    """Epoch microseconds as timestamps; so many of them are negative, and nulls."""
    return pa.array(times_us, mask=times_us < 0 if unknown else None).cast(TIMESTAMP)
