"""Data files whose names seal their content, so that no flipped bit and no other file's content passes for a row.

A name ends with the CRC32C of the file's last 64 KiB: its footer, and all of a small file. What lies before that in a
large one is guarded by the checksums of its pages. Files of other writers have other names, and are taken as they are.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from typing import TYPE_CHECKING, Any

from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.crc32c import crc32c

if TYPE_CHECKING:
    from kraftlake.metadata_log.storage.location import Location

_TAIL = 64 * 1024
_SEALED = re.compile(r"\.c([0-9a-f]{8})(?:\.zstd)?\.parquet")


class DamagedFileError(OSError):
    """The content of a file is not what its name seals."""


def sealed_name(prefix: str, data: bytes | memoryview, suffix: str = ".parquet") -> str:
    """A name for a new data file: `prefix`, what makes it unique, its seal, `suffix`."""
    return f"{prefix}-{uuid.uuid4()}.c{crc32c(memoryview(data)[-_TAIL:]):08x}{suffix}"


def checked_source(place: Location) -> Any:
    """What pyarrow reads the file at `place` from; raises FileNotFoundError, OSError where it isn't what it was."""
    found = _SEALED.search(place.name)
    if found is not None:
        tail, size = _tail_of(place)
        if crc32c(tail) != int(found[1], 16):
            raise DamagedFileError(errno.EIO, "its content is not what was written", str(place))
        if len(tail) == size:
            import pyarrow as pa

            return pa.BufferReader(tail)
    return place.open() if isinstance(place, ObjectPath) else str(place)


def _tail_of(place: Location) -> tuple[bytes, int]:
    """The last bytes of a file, and its size."""
    with place.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        return file.read(_TAIL) or b"", size
