"""The setup of processes that work on columns, and of services with many threads: memory, threads and pandas."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_MIB: Final = 1 << 20
_SETTINGS: Final = {
    _M_MMAP_THRESHOLD: 32 * _MIB,  # the maximum of glibc
    _M_TRIM_THRESHOLD: 512 * _MIB,
    _M_TOP_PAD: 16 * _MIB,
    _M_ARENA_MAX: 2,  # the memory that is kept is kept for each arena
}
_CHOSEN_BY_USER: Final = (
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
)
_POOL: Final = "ARROW_DEFAULT_MEMORY_POOL"
_PANDAS: Final = "pandas"


def configure_process() -> None:
    """Keep freed memory, prevent pyarrow's import of pandas, and prevent numpy from starting threads.

    Environment variables have precedence. Commands and benchmarks call this before they import numpy or pyarrow and
    start threads; it has no effect on a numpy that is already imported.
    """
    prevent_numpy_threads()
    keep_freed_memory()
    skip_pandas()


def _allow_open_files() -> None:
    """Raise the limit of open files to the maximum, as a JVM does: a broker has three files open per segment."""
    _, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # where the system has a lower limit that it does not report
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, highest))


def configure_service() -> None:
    """Prepare for many threads and open files; prevents pyarrow's import of pandas, and numpy's threads.

    By default the C library and Arrow keep memory for each thread that once used some: several hundred megabytes for
    fifty waiting threads. Afterwards freed memory is returned to the system. To be called like `configure_process`.
    """
    _allow_open_files()
    prevent_numpy_threads()
    os.environ.setdefault(_POOL, "system")  # Arrow's own threads, too, read it when Arrow is imported
    if not any(name in os.environ for name in _CHOSEN_BY_USER):
        _set_options({_M_ARENA_MAX: 2})
    skip_pandas()


def prevent_numpy_threads() -> None:
    """Prevent numpy from starting threads; to be called before its import.

    Its matrix library starts a thread for each further core, which takes 20 ms of processor time, then waits in a loop
    and takes more from other threads; kraftlake multiplies no matrices.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def keep_freed_memory() -> bool:
    """Keep freed memory for the next allocations; returns whether the setting is active.

    Work on columns allocates and frees many arrays of some megabytes. By default each array is mapped separately, and
    the kernel clears its pages. Peak memory stays the same, but up to half a GiB is not returned to the system before
    the process ends. Arrow then also allocates from the C library, since Arrow's own pool returns memory after
    milliseconds. Does nothing without glibc. Environment variables of glibc and Arrow have precedence.
    """
    if any(name in os.environ for name in _CHOSEN_BY_USER) or not _set_options(_SETTINGS):
        return False
    if _POOL not in os.environ:
        import pyarrow as pa

        pa.set_memory_pool(pa.system_memory_pool())
    return True


def return_freed_memory() -> None:
    """Return freed memory to the system, as far as the C library can.

    A process that runs for days would otherwise grow.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def collect_garbage() -> None:
    """Collect what refers to itself, and return freed memory to the system.

    Python collects such objects by itself when their number has grown by a quarter of all that live: in a process with
    many images that is late.
    """
    gc.collect()
    return_freed_memory()


def _set_options(options: Mapping[int, int]) -> bool:
    """Set options of the C library's allocator; returns whether the library supports them."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and all(set_option(option, value) for option, value in options.items())


def skip_pandas() -> None:
    """Prevent pyarrow's import of pandas at its first conversion of a Python object.

    The import takes a quarter of a second of CPU time, as much as a hundred thousand records; pyarrow tries it once and
    remembers the result. `import pandas` and `to_pandas` still work, but `pa.array` treats a Series like any other
    sequence, and the NA of pandas as an unknown object: call this only in a process without either, before it starts
    threads. Does nothing if pandas is already imported.
    """
    if _PANDAS in sys.modules:
        return
    import pyarrow as pa

    unseen = _Unseen()
    sys.meta_path.insert(0, unseen)
    try:
        pa.array([0]).to_numpy()  # the conversions to and from Python each try the import
    finally:
        sys.meta_path.remove(unseen)


class _Unseen:
    """Hides pandas from imports."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == _PANDAS:
            raise ModuleNotFoundError(f"{_PANDAS} is hidden", name=_PANDAS)
        return None
