"""Lists of brokers, one in each row, as flat arrays: compared, and written as text, without a loop over rows.

Imports numpy.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@attrs.frozen(eq=False)
class BrokerLists:
    """The list of row i is members[bounds[i]:bounds[i + 1]]; `bounds` (int32[n + 1]) begin with 0, `members` int32."""

    bounds: Any = attrs.field(repr=False)
    members: Any = attrs.field(repr=False)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> Any:
        """The length of each list (int32[n])."""
        return np.diff(self.bounds)

    @property
    def any(self) -> Any:
        """Whether each list has a member (bool[n])."""
        return self.lengths > 0

    def take(self, rows: Any) -> BrokerLists:
        """The lists of some rows (int64[m])."""
        lengths = self.lengths[rows]
        bounds = _bounds(lengths)
        shifts = np.repeat(self.bounds[:-1][rows] - bounds[:-1], lengths)
        return BrokerLists(bounds, self.members[np.arange(len(shifts)) + shifts])

    def without(self, others: BrokerLists) -> BrokerLists:
        """The members that the other list of the same row lacks, in their order."""
        rows = np.repeat(np.arange(len(self)), self.lengths)
        lengths, kept = others.lengths[rows], np.ones(len(rows), np.bool_)
        compared = np.flatnonzero(lengths)
        place = 0
        while len(compared):  # with the member of the other list at each place
            same = self.members[compared] == others.members[others.bounds[rows[compared]] + place]
            kept[compared[same]] = False
            place += 1
            compared = compared[~same & (lengths[compared] > place)]
        return BrokerLists(_bounds(np.bincount(rows[kept], minlength=len(self))), self.members[kept])

    def same_members(self, others: BrokerLists) -> Any:
        """Whether both lists of a row have the same members, in any order (bool[n])."""
        return ~(self.without(others).any | others.without(self).any)

    def differ_from(self, others: BrokerLists) -> Any:
        """Whether both lists of a row differ, in their members or in the order of these (bool[n])."""
        differ = self.lengths != others.lengths
        if differ.any():
            rows = np.flatnonzero(~differ)
            differ[rows] = self.take(rows).differ_from(others.take(rows))
        else:
            unequal = np.flatnonzero(self.members != others.members)
            differ[np.searchsorted(self.bounds, unequal, side="right") - 1] = True
        return differ

    def texts(self) -> pa.StringArray:
        """Each list as text: `[1, 2, 3]`."""
        return pc.binary_join_element_wise("[", self._joined(), "]", "")

    def words(self) -> pa.StringArray:
        """Each list in words: `2`, `2 and 3`, `1, 2 and 3`; nothing for none."""
        return pc.replace_substring_regex(self._joined(), ", ([^,]*)$", r" and \1")

    def _joined(self) -> pa.StringArray:
        members = pa.array(self.members).cast(pa.string())
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(self.bounds), members), ", ")


def _bounds(lengths: Any) -> Any:
    bounds = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    return bounds
