"""Eight bytes at once, as a number of which the first is the lowest.

Written so that LLVM makes one load or store of all of them: their places (uint64) can't be negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.compiled import inlined


@inlined
def read_word(data: Any, q: Any) -> Any:
    """The eight bytes at `q`."""
    return (
        np.uint64(data[q])
        | np.uint64(data[q + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[q + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[q + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[q + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[q + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[q + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[q + np.uint64(7)]) << np.uint64(56)
    )


@inlined
def put_word(into: Any, q: Any, word: Any) -> None:
    """Write eight bytes at `q`."""
    into[q] = np.uint8(word)
    into[q + np.uint64(1)] = np.uint8(word >> np.uint64(8))
    into[q + np.uint64(2)] = np.uint8(word >> np.uint64(16))
    into[q + np.uint64(3)] = np.uint8(word >> np.uint64(24))
    into[q + np.uint64(4)] = np.uint8(word >> np.uint64(32))
    into[q + np.uint64(5)] = np.uint8(word >> np.uint64(40))
    into[q + np.uint64(6)] = np.uint8(word >> np.uint64(48))
    into[q + np.uint64(7)] = np.uint8(word >> np.uint64(56))
