"""What differs between two lists of a few numbers, for many pairs of them."""

from __future__ import annotations

from typing import Any

from kraftlake.kernels.compiled import compiled


@compiled
def missing_members(bounds: Any, members: Any, count: int, missing: Any) -> None:
    """Which members of two lists the other one of them lacks, into `missing` (uint8, 1 where that is so).

    List i has the members[bounds[i]:bounds[i + 1]] (int32); lists i and count + i are a pair.
    """
    for i in range(count):
        first, end = bounds[i], bounds[i + 1]
        other, other_end = bounds[count + i], bounds[count + i + 1]
        for j in range(other, other_end):
            missing[j] = 1
        for j in range(first, end):
            missing[j] = 1
            for k in range(other, other_end):
                if members[k] == members[j]:
                    missing[j] = 0
                    missing[k] = 0
