"""The lakes at a place: one lake, a folder of lakes, or a pattern such as `/clusters/*/lake`.

In a pattern `*`, `?` and `[…]` match within one name of the path, except a leading dot. Patterns work in an object
store as on a disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE, SNAPSHOTS_TABLE
from kraftlake.metadata_log.storage.location import Location, fixed_location, folders_of
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.errors import LakeError

_PATTERN = re.compile(r"[*?[]")


def is_lake(place: Location) -> bool:
    """Whether a place is a lake, sound or not: a folder with the log's table, or with the snapshots' table alone.

    True if the check is refused: opening the lake then raises the reason.
    """
    try:
        return any((place / table / LOG_FOLDER).is_dir() for table in (LOG_TABLE, SNAPSHOTS_TABLE))
    except OSError:
        return True


def names_many(place: str | os.PathLike[str] | Location) -> bool:
    """Whether a place is a pattern or a folder of lakes, and not one lake or empty.

    Raises UsageError for a scheme that holds no lakes, LakeError for a folder that can't be read.
    """
    location = fixed_location(place)
    return not is_lake(location) and (_is_pattern(location) or bool(_lakes_in(location)))


def lakes_at(place: str | os.PathLike[str] | Location) -> list[Location]:
    """Return the distinct lakes at a place, with paths that are valid in every process; those of a folder sorted.

    A folder stands for the lakes directly in it, a pattern for the lakes and the folders of lakes that match. Raises
    LakeError without a lake or for an unreadable place, UsageError for a scheme that holds no lakes.
    """
    location = fixed_location(place)
    if is_lake(location):
        return [location]
    if not _is_pattern(location):
        found = _lakes_in(location)
        if not found:
            MetadataLog.open(location)  # raises what is there instead
        return found
    root, names = _split(location)
    matches = map(fixed_location, _matching(root, names))
    lakes = [lake for match in matches for lake in ([match] if is_lake(match) else _lakes_in(match))]
    if not lakes:
        raise LakeError(f"No lake matches {location}: `kraftlake import SOURCE LAKE` makes a lake.")
    return list(dict.fromkeys(lakes))


def distinct_names(lakes: Sequence[Location]) -> list[str]:
    """Return a name for each lake: its folder's, or the whole path or URI if several folders have the same name."""
    names = [lake.name for lake in lakes]
    return [name if names.count(name) == 1 else str(lake) for name, lake in zip(names, lakes, strict=True)]


def _is_pattern(place: Location) -> bool:
    return _PATTERN.search(str(place)) is not None and not place.is_dir()


def _lakes_in(folder: Location) -> list[Location]:
    return [fixed_location(found) for found in folders_of(folder) if is_lake(found)]


def _matching(folder: Location, names: Sequence[str]) -> Iterator[Location]:
    """Return the folders below a folder whose names match, level by level."""
    if not names:
        yield folder
        return
    name, *rest = names
    if not _PATTERN.search(name):
        yield from _matching(folder / name, rest)
        return
    for found in folders_of(folder):
        if fnmatchcase(found.name, name) and (name.startswith(".") or not found.name.startswith(".")):
            yield from _matching(found, rest)


def _split(place: Location) -> tuple[Location, Sequence[str]]:
    """Split a place into its root, and the names that lead from there to it."""
    if isinstance(place, Path):
        return Path(place.anchor), place.parts[1:]
    return ObjectPath(place.bucket), place.key.split("/")
