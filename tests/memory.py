"""What a call allocates at most, by tracemalloc."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable


def peak_memory(call: Callable[[], object]) -> int:
    """The largest number of bytes that Python held during `call` beyond what it held before."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
