"""The values of records put together, and what kind of record each is."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import compiled


@compiled
def frame_kinds(data: Any, starts: Any, stops: Any, kinds: Any) -> bool:
    """The frame of each value as 128 × api key + version, into `kinds`; False where one isn't three plain bytes."""
    for i in range(len(starts)):
        p = starts[i]
        if stops[i] - p < 3 or data[p] != 1 or data[p + 1] >= 0x80 or data[p + 2] >= 0x80:
            return False
        kinds[i] = (np.int64(data[p + 1]) << 7) | np.int64(data[p + 2])
    return True


@compiled
def gather(data: Any, starts: Any, stops: Any, into: Any, bounds: Any) -> None:
    """Copy the values one behind the other; value i is into[bounds[i]:bounds[i + 1]]."""
    at = 0
    bounds[0] = 0
    for i in range(len(starts)):
        for p in range(starts[i], stops[i]):
            into[at] = data[p]
            at += 1
        bounds[i + 1] = at
