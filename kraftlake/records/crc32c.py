"""The checksum of record batches and of the lake's own files, CRC32C, by the package google-crc32c."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from kraftlake.runtime.errors import EnvironmentFaultError

try:
    # Without its compiled code the package warns, and goes on with loops of Python: that is refused here.
    with warnings.catch_warnings(action="ignore"):
        from google_crc32c import extend, implementation
except ImportError:
    implementation = "none"
if implementation != "c":
    raise EnvironmentFaultError(
        "The package google-crc32c, which computes checksums, is not installed with its compiled code: "
        "`pip install --force-reinstall --only-binary :all: google-crc32c` installs it so."
    )

_extend: Callable[[int, Any], int] = extend
_PIECE = 256 * 1024


def crc32c(data: Any, crc: int = 0) -> int:
    """Return the CRC32C of contiguous bytes, continued from that of the bytes before them.

    The package reads bytes and Arrow's buffers without a copy, and refuses a memoryview, which is copied in pieces that
    stay in the processor's cache.
    """
    if type(data) is not memoryview:
        return _extend(crc, data)
    if len(data) <= _PIECE:
        return _extend(crc, data.tobytes())
    for start in range(0, len(data), _PIECE):
        crc = _extend(crc, data[start : start + _PIECE].tobytes())
    return crc
