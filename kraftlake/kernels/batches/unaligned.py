"""Unaligned loads of eight bytes, little-endian.

LLVM makes one load of them: the position is a uint64, which can't be negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels.aot.compiled import inlined


@inlined
def load_unaligned(data: Any, q: Any) -> Any:
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
