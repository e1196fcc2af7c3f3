"""Where a lake lies: a folder on a disk, or a prefix in an object store. Both are asked by the same names.

What the log uses of either: `/`, `name`, `suffix`, `parent`, `read_bytes`, `exists`, `iterdir`, `open`, `str`.
Writing goes through a `Disk`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeAlias, TypeGuard
from urllib.parse import unquote, urlsplit

from kraftlake.metadata_log.storage.object_path import SCHEMES, ObjectPath, is_object_uri
from kraftlake.metadata_log.storage.sealed_files import DamagedFileError, checked_source
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.arrow import pq
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


def names_in(folder: Location, *, after: str = "") -> list[str]:
    """The names right below a folder that sort behind `after`, in no order; raises FileNotFoundError, OSError."""
    if isinstance(folder, ObjectPath):
        return [path.name for path in folder.iterdir(after=after)]
    return [name for name in os.listdir(folder) if name > after]  # noqa: PTH208  # half the time


def fixed_location(place: str | os.PathLike[str] | Location) -> Location:
    """As `lake_location`, by a name that is the same in every process: executors have other working directories."""
    location = lake_location(place)
    return location.resolve() if isinstance(location, Path) else location


def is_there(path: Location) -> bool:
    """Whether there is a file of this name; raises RefusedReadError where the disk or the store doesn't say."""
    try:
        return path.exists()
    except OSError as fault:
        raise refused_read(path, fault) from fault


def refused_read(path: Location, fault: OSError) -> RefusedReadError:
    """The error for a read that the disk or the store refused."""
    return RefusedReadError(f"{path} can't be read: {fault.strerror or fault}.")


def is_refusal(fault: Exception) -> TypeGuard[OSError]:
    """Whether a read was refused, while a file that is gone, or damaged, was read: pyarrow's faults have no number."""
    gone_or_damaged = isinstance(fault, (FileNotFoundError, DamagedFileError))
    return isinstance(fault, OSError) and bool(fault.errno) and not gone_or_damaged


def modified_ms(path: Location) -> int:
    """When a file was last written, in epoch ms by the clock of its disk or object store.

    Raises FileNotFoundError, OSError.
    """
    return path.stat().st_mtime_ns // 1_000_000 if isinstance(path, Path) else path.modified_ms()


def open_parquet_file(place: Location, *, dictionaries: Collection[str] = ()) -> pq.ParquetFile:
    """A Parquet file for reading; raises FileNotFoundError, OSError for another content too, pyarrow's errors.

    `dictionaries` names columns of strings, or of lists of them, that are to be read as dictionaries.
    """
    source = checked_source(place)
    parquet = pq.ParquetFile(source, page_checksum_verification=True)
    if not dictionaries:
        return parquet
    chosen = [path for path in leaf_paths(parquet) if path.partition(".")[0] in dictionaries]
    return pq.ParquetFile(source, metadata=parquet.metadata, read_dictionary=chosen, page_checksum_verification=True)


def leaf_paths(parquet: pq.ParquetFile) -> list[str]:
    """The dotted paths of a file's columns, in their order."""
    schema = parquet.metadata.schema
    return [schema.column(index).path for index in range(len(schema))]
