"""Memory for large arrays that is used again once nobody holds it. Imports numpy.

Pages that are new to a process cost more than what is written into them: the system clears them first, and a virtual
machine may have to ask its host for each. Who replays one log after another gets the memory of the images and changes
that are gone by then.
"""

from __future__ import annotations

import sys
import threading
from math import prod
from typing import Any, Final

import numpy as np

FROM_BYTES: Final = 1 << 20
"""Smaller arrays are the business of malloc, which keeps memory too."""
KEPT_BYTES: Final = 192 << 20
"""What is kept at most, in use or not; arrays that don't go with it come from the system, and go back."""

_lock = threading.Lock()
_blocks: list[Any] = []
_UNUSED: Final = 2
"""References to a block that nobody uses: the list's, and the one of who counts."""


def empty(shape: int | tuple[int, ...], dtype: Any) -> Any:
    """As `np.empty`. The memory is free again when the array and all views of it are gone."""
    size = prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    if not FROM_BYTES <= size <= KEPT_BYTES:
        return np.empty(shape, dtype)
    with _lock:
        block = _unused_block(size)
        if block is None:
            _drop_unused(KEPT_BYTES - size)
            if sum(map(len, _blocks)) > KEPT_BYTES - size:
                return np.empty(shape, dtype)
            block = np.empty(size, np.uint8)
            _blocks.append(block)
        return block[:size].view(dtype).reshape(shape)


def copy_of(array: Any) -> Any:
    """As `array.copy()`, for C-contiguous ones."""
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def give_back() -> None:
    """Give the memory that nobody uses back to the system."""
    with _lock:
        _drop_unused(0)


def _unused_block(size: int) -> Any:
    """The smallest that is large enough, and not much too large."""
    fitting = [place for place, block in enumerate(_blocks) if size <= len(block) <= 2 * size]
    for place in sorted(fitting, key=lambda place: len(_blocks[place])):
        if sys.getrefcount(_blocks[place]) == _UNUSED:
            return _blocks[place]
    return None


def _drop_unused(kept: int) -> None:
    """Drop blocks that nobody uses, the oldest first, until no more than `kept` bytes are left."""
    place = 0
    while place < len(_blocks) and sum(map(len, _blocks)) > kept:
        if sys.getrefcount(_blocks[place]) == _UNUSED:
            del _blocks[place]
        else:
            place += 1
