"""Memory for arrays."""

from __future__ import annotations

import cython
from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize

from kraftlake.kernels.language import Int64, allocating


@allocating
def unset(size: Int64) -> bytearray:
    """Memory of a size that holds anything: nothing has written it yet."""
    return PyByteArray_FromStringAndSize(cython.NULL, size)
