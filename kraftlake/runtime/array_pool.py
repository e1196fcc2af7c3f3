"""A pool of memory for large arrays. Imports numpy.

Pages that are new to a process cost more than what is written into them: the system clears them first, and a virtual
machine may have to ask its host for each. A replay takes the memory of the images and changes that were freed before.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

FROM_BYTES: Final = 1 << 20
"""Smaller arrays come from malloc, which keeps memory too."""
KEPT_BYTES: Final = 192 << 20
"""The most unused memory that is kept; a larger array comes from the system, and goes back to it."""

_unused: dict[int, Any] = {}
"""Unused blocks, the oldest first. Every operation on it is atomic."""


class _Lease(np.ndarray[Any, Any]):
    """A block in use: arrays made of it hold this, and when the last of them is freed, the block is kept."""

    def __del__(self) -> None:
        block = self.base
        _unused[id(block)] = block
        _drop_unused(KEPT_BYTES)


def empty(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """As `np.empty`. The memory is free again when the array and all views of it are gone."""
    size = prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    if not FROM_BYTES <= size <= KEPT_BYTES:
        return np.empty(shape, dtype)
    block = _taken(size)
    lease = (np.empty(size, np.uint8) if block is None else block).view(_Lease)
    held = memoryview(lease)  # type: ignore[arg-type] # of a lease itself numpy's views would pass on the block alone
    return np.frombuffer(held, np.uint8, size).view(dtype).reshape(shape)


def copy_of(array: Any) -> Any:
    """As `array.copy()`, for C-contiguous ones."""
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def give_back() -> None:
    """Return unused memory to the system."""
    _drop_unused(0)


def _taken(size: int) -> Any:
    """Take the smallest unused block that is large enough, and not much too large."""
    fitting = [(len(block), key) for key, block in list(_unused.items()) if size <= len(block) <= 2 * size]
    for _, key in sorted(fitting):
        block = _unused.pop(key, None)
        if block is not None:
            return block
    return None


def _drop_unused(kept: int) -> None:
    """Drop unused blocks, the oldest first, until no more than `kept` bytes are left."""
    blocks = list(_unused.items())
    total = sum(len(block) for _, block in blocks)
    for key, block in blocks:
        if total <= kept:
            return
        _unused.pop(key, None)
        total -= len(block)
