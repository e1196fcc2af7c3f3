"""The sources below a folder: the metadata directories of one node or several, and archives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kraftlake.kafka_files.file_names import ARCHIVE_SUFFIXES, METADATA_DIRECTORY, is_log_file
from kraftlake.runtime.errors import NotASourceError

_MOST_FOLDERS: Final = 20_000
_DEEPEST: Final = 10
_LOST_AND_FOUND: Final = "lost+found"


def metadata_directories(folder: Path, is_metadata: Callable[[Path], bool]) -> list[Path]:
    """Return the metadata directories in a folder that is not one itself, at any depth, in order.

    Links are not followed. They are recognised by name; if no name matches, by `is_metadata` for folders with log
    files. Raises NotASourceError for a folder with too many folders, OSError for an unreadable one.
    """
    inner = folder / METADATA_DIRECTORY
    if inner.is_dir():
        return [inner]
    named, others = [], []
    for here, folders, files in _walk(folder):
        if here.name == METADATA_DIRECTORY:
            named.append(here)
            folders.clear()
        elif any(map(is_log_file, files)):
            others.append(here)
            folders.clear()
    return sorted(named) or sorted(filter(is_metadata, others))


def archives_below(folder: Path, is_archive: Callable[[Path], bool]) -> list[Path]:
    """Return the archives in a folder, at any depth, in order: files with an archive's name and content.

    Raises as above.
    """
    named = (here / name for here, _, files in _walk(folder) for name in files if name.endswith(ARCHIVE_SUFFIXES))
    return sorted(path for path in named if path.is_file() and is_archive(path))


def _walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder with the names of its subfolders, and its files.

    A subfolder removed from the names is not entered. A folder deleted meanwhile is skipped, and so is lost+found, the
    folder of a file system's check, which only root can read.
    """

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError) or error.filename == str(folder):
            raise error

    for seen, (path, folders, files) in enumerate(os.walk(folder, onerror=fail)):
        if seen >= _MOST_FOLDERS:
            raise NotASourceError(
                f"{folder} holds more than {_MOST_FOLDERS:,} folders: name the metadata directory, {METADATA_DIRECTORY}"
            )
        folders[:] = [name for name in folders if name != _LOST_AND_FOUND]
        here = Path(path)
        if len(here.relative_to(folder).parts) >= _DEEPEST:
            folders.clear()
        yield here, folders, files
