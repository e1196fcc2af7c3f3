"""Values that change at positions of a log. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np

NONE = -1


class Change(NamedTuple):
    """A value of a group, such as a broker, from a position on: the number of a delta.

    `time` is that of the delta, `offset` that of the record.
    """

    group: int
    position: int
    time: int
    offset: int
    value: int


@attrs.frozen(eq=False)
class Timeline:
    """The changes of values of groups, by group and position: int64 arrays. `end` is above all positions."""

    groups: Any
    positions: Any
    times: Any
    offsets: Any
    values: Any
    end: int
    _keys: Any = attrs.field(
        default=attrs.Factory(lambda of: of.groups * (of.end + 1) + of.positions, takes_self=True), repr=False
    )

    @classmethod
    def of(cls, changes: Sequence[Change], end: int) -> Timeline:
        """The timeline of changes; of several of one group at one position the last counts."""
        columns = np.array(changes, np.int64).reshape(-1, len(Change._fields))
        columns = columns[np.lexsort((np.arange(len(columns)), columns[:, 1], columns[:, 0]))]
        same = (columns[1:, :2] == columns[:-1, :2]).all(axis=1)
        columns = columns[np.append(~same, np.ones(min(len(columns), 1), np.bool_))]
        names = ("groups", "positions", "times", "offsets", "values")
        return cls(**dict(zip(names, columns.T, strict=True)), end=end)

    def at(self, groups: Any, positions: Any) -> Any:
        """The number of the change that counts for groups (NONE for none) at positions; -1 for none."""
        found = self._after(groups, positions) - 1
        known = (found >= 0) & (groups >= 0)
        known[known] = self.groups[found[known]] == groups[known]
        return np.where(known, found, NONE)

    def within(self, groups: Any, positions: Any, until: Any) -> tuple[Any, Any]:
        """The first change of each group after a position, and the number of its changes before `until`."""
        first = self._after(groups, positions)
        last = np.searchsorted(self._keys, groups * (self.end + 1) + until)
        return first, np.where(groups >= 0, np.maximum(last - first, 0), 0)

    def values_at(self, groups: Any, positions: Any, otherwise: int) -> Any:
        """The values of groups at positions, `otherwise` for none."""
        found = self.at(groups, positions)
        if not len(self.values):
            return np.full(len(found), otherwise, np.int64)
        return np.where(found < 0, otherwise, self.values[found])

    def _after(self, groups: Any, positions: Any) -> Any:
        return np.searchsorted(self._keys, groups * (self.end + 1) + positions, side="right")
