"""The location of a lake: a folder on a disk, or a prefix in an object store, with the same interface.

The log uses these names of either: `/`, `name`, `suffix`, `parent`, `read_bytes`, `exists`, `iterdir`, `open`, `str`.
Writes go through a `Disk`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from kraftlake.metadata_log.storage.object_path import SCHEMES, ObjectPath, is_object_uri
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.errors import RefusedReadError, UsageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")

Location: TypeAlias = Path | ObjectPath


def lake_location(place: str | os.PathLike[str] | Location) -> Location:
    """Return a path, or an object store's location for a URI of a supported scheme.

    Raises UsageError for any other URI.
    """
    if isinstance(place, ObjectPath):
        return place
    text = path_text(place, "the path or URI of a lake")
    if is_object_uri(text):
        return ObjectPath.parse(text)
    scheme, found, _ = text.partition("://")
    if scheme == "file" and found:
        return Path(path_text(unquote(urlsplit(text).path), "the path or URI of a lake"))
    if found and _SCHEME.fullmatch(scheme):
        known = " or ".join(f"{known}://…" for known in (*SCHEMES, "file"))
        raise UsageError(f"{text} has a scheme that holds no lakes: give a path, {known}.")
    return Path(text)


def folders_of(place: Location) -> list[Location]:
    """The folders directly below a place, sorted; none if it does not exist. Raises RefusedReadError."""
    try:
        if isinstance(place, ObjectPath):
            return sorted(place.folders(), key=str)
        return sorted((below for below in place.iterdir() if below.is_dir()), key=str)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as fault:
        raise refused_read(place, fault) from fault


def fixed_location(place: str | os.PathLike[str] | Location) -> Location:
    """The same as `lake_location`, as an absolute path: executors have other working directories."""
    location = lake_location(place)
    return location.resolve() if isinstance(location, Path) else location


def refused_read(path: Location, fault: OSError) -> RefusedReadError:
    """Return the error for a read that the disk or the store refused."""
    return RefusedReadError(f"{path} can't be read: {fault.strerror or fault}.")


def size_of(path: Path) -> int | None:
    """The size in bytes of a file on a disk; None if there is none. Raises RefusedReadError."""
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise refused_read(path, fault) from fault


def modified_ms(path: Location) -> int:
    """The time at which a file was last written, in epoch ms by the clock of its disk or object store.

    Raises FileNotFoundError, OSError.
    """
    return path.stat().st_mtime_ns // 1_000_000 if isinstance(path, Path) else path.modified_ms()
