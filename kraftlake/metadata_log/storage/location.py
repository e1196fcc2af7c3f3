"""Where a lake lies: a folder on a disk, or a prefix in an object store. Both are asked by the same names.

What the log uses of either: `/`, `name`, `suffix`, `parent`, `read_bytes`, `exists`, `iterdir`, `open`, `str`.
Writing goes through a `Disk`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from kraftlake.metadata_log.storage.object_path import SCHEMES, ObjectPath, is_object_uri
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.errors import RefusedReadError, UsageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")

Location: TypeAlias = Path | ObjectPath


def lake_location(place: str | os.PathLike[str] | Location) -> Location:
    """A path, or a URI of one of the schemes that hold lakes; raises UsageError for what is neither."""
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


def folders_of(place: Location) -> Iterator[Location]:
    """The folders right below a place, in no order; none where it isn't there."""
    if isinstance(place, ObjectPath):
        yield from place.folders()
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        yield from (entry for entry in place.iterdir() if entry.is_dir())


def fixed_location(place: str | os.PathLike[str] | Location) -> Location:
    """As `lake_location`, by a name that is the same in every process: executors have other working directories."""
    location = lake_location(place)
    return location.resolve() if isinstance(location, Path) else location


def refused_read(path: Location, fault: OSError) -> RefusedReadError:
    """The error for a read that the disk or the store refused."""
    return RefusedReadError(f"{path} can't be read: {fault.strerror or fault}.")


def modified_ms(path: Location) -> int:
    """When a file was last written, in epoch ms by the clock of its disk or object store.

    Raises FileNotFoundError, OSError.
    """
    return path.stat().st_mtime_ns // 1_000_000 if isinstance(path, Path) else path.modified_ms()
