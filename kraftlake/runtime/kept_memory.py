"""Has a process of kraftlake's own keep the memory that it frees for its next arrays."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
_MIB: Final = 1 << 20
_SETTINGS: Final = {
    _M_MMAP_THRESHOLD: 32 * _MIB,  # the most that glibc takes
    _M_TRIM_THRESHOLD: 512 * _MIB,
    _M_TOP_PAD: 16 * _MIB,
}
_CHOSEN_BY_USER: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")
_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"


def keep_freed_memory() -> bool:
    """Keep memory that was freed, for what is allocated next; gives whether that is so now.

    Work on columns makes and drops arrays of some megabytes all the time. By default each of them is mapped anew, and
    the kernel clears its pages each time. The peak of memory stays what it is, but up to half a GiB of it is not given
    back before the process ends, so this is for a process of kraftlake's own.
    numpy's arrays and Arrow's, of which those of an own pool are given back after milliseconds, come from the C library
    then. Nothing is done where that is not glibc, and nothing against what the user has chosen by an environment
    variable of glibc's or Arrow's.
    """
    if any(name in os.environ for name in _CHOSEN_BY_USER):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None or not all(set_option(option, value) for option, value in _SETTINGS.items()):
        return False
    if _POOL not in os.environ:
        import pyarrow as pa

        pa.set_memory_pool(pa.system_memory_pool())
    return True
