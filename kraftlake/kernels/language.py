"""The vocabulary of kernels: C types of numbers and buffers, and the marks of functions.

The build reads this file and nothing imports it at run time: see `build_backend/amalgamation.py`.
"""

from __future__ import annotations

from typing import Any

import cython

Int8 = cython.schar
UInt8 = cython.uchar
Int16 = cython.short
Int32 = cython.int
UInt32 = cython.uint
Int64 = cython.longlong
UInt64 = cython.ulonglong
Bool = cython.bint

Bytes = cython.const[cython.uchar][::1]
Ints = cython.const[cython.int][::1]
Longs = cython.const[cython.longlong][::1]
Hashes = cython.const[cython.ulonglong][::1]
IntRows = cython.const[cython.int][:, ::1]
LongRows = cython.const[cython.longlong][:, ::1]
Ids = cython.const[cython.ulonglong][:, ::1]
ByteRows = cython.const[cython.uchar][:, ::1]
"""Buffers that a kernel reads."""

BytesOut = cython.uchar[::1]
IntsOut = cython.int[::1]
LongsOut = cython.longlong[::1]
HashesOut = cython.ulonglong[::1]
IntRowsOut = cython.int[:, ::1]
LongRowsOut = cython.longlong[:, ::1]
IdsOut = cython.ulonglong[:, ::1]
"""Buffers that a kernel writes."""


def compiled(function: Any) -> Any:
    """Mark a function that Python calls. It must neither allocate nor raise, and runs without the GIL."""
    return function


def inlined(function: Any) -> Any:
    """Mark a function that only kernels call."""
    return function


def allocating(function: Any) -> Any:
    """Mark a function that Python calls and that makes an object, with the GIL."""
    return function
