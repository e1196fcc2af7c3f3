"""Arrays of numbers in plain memory, which compiled code changes and numpy may look at; neither needs the other."""

from __future__ import annotations

import mmap
from struct import calcsize
from typing import Any, Final

from kraftlake.kernels import compiled

MAPPED_FROM: Final = 1 << 23
"""Number of bytes from which on memory is mapped, in large pages: what of it nobody uses takes none."""
_ZEROS_FROM: Final = 1 << 20
"""The same for zeros: the rest of them takes no time either."""
_SIZES: Final = {form: calcsize(form) for form in "BiqQ"}
_unset = compiled.unset


def zeros(form: str, count: int, columns: int = 0) -> Any:
    """`count` numbers, or rows of `columns` numbers, of a format of `struct`; all are 0."""
    size = _SIZES[form] * (columns or 1) * (count or 1)
    return _cast(_mapped(size) if size >= _ZEROS_FROM else bytearray(size), form, count, columns)


def room(form: str, count: int, columns: int = 0) -> Any:
    """The same for numbers that are written before they are read: they hold anything."""
    size = _SIZES[form] * (columns or 1) * (count or 1)
    return _cast(_mapped(size) if size >= MAPPED_FROM else _unset(size), form, count, columns)


def _cast(memory: Any, form: str, count: int, columns: int) -> Any:
    shape = (count or 1, columns) if columns else (count or 1,)
    made = memoryview(memory).cast(form, shape)  # type: ignore[call-overload]
    return made if count else made[:0]


def _mapped(size: int) -> mmap.mmap:
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def of_bytes(form: str, data: Any, columns: int = 0) -> Any:
    """Bytes as numbers, or as rows of `columns` numbers; without a copy."""
    view = memoryview(data)
    if not view:
        return zeros(form, 0, columns)
    if not columns:
        return view.cast(form)  # type: ignore[call-overload]
    return view.cast(form, (len(view) // (_SIZES[form] * columns), columns))  # type: ignore[call-overload]


def flat(numbers: Any) -> Any:
    """The bytes of numbers; without a copy."""
    return memoryview(numbers).cast("B") if len(numbers) else memoryview(b"")


def grown(numbers: Any, count: int) -> Any:
    """Room for more numbers, or rows, that begins with the same ones."""
    larger = room(numbers.format, count, numbers.shape[1] if numbers.ndim > 1 else 0)
    if len(numbers):
        flat(larger)[: numbers.nbytes] = flat(numbers)
    return larger
