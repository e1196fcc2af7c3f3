"""The place of a lake that an import creates, and its removal after a failed import."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.runtime.errors import KraftlakeError, LakeError

if TYPE_CHECKING:
    from kraftlake.metadata_log.storage.location import Location


def is_lake(path: Location) -> bool:
    """Whether there is a lake at `path`, even an empty one."""
    try:
        return any(entry.suffix == ".json" for entry in (path / "log" / "_delta_log").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as fault:
        raise LakeError(f"{path} can't be read: {fault.strerror or fault}.") from fault


def check_place(path: Location) -> None:
    """Raise LakeError where no lake can be created at `path`; called before the source is read."""
    if not isinstance(path, Path):
        if path.is_dir():
            raise LakeError(f"{path} is in the way and no lake: a new lake needs a prefix that holds nothing.")
        return
    if not path.absolute().parent.is_dir():
        raise LakeError(f"{path} can't be made: the folder {path.absolute().parent} does not exist.")
    if path.exists() and (
        not path.is_dir() or any(entry.name != "log" or entry.is_symlink() for entry in path.iterdir())
    ):
        raise LakeError(f"{path} is in the way and no lake: a new lake needs an empty folder, or none.")


def discard_empty_lake(path: Location, *, keep_folder: bool) -> None:
    """Remove a lake without records that this process created; with `keep_folder` the empty folder stays.

    The folder is renamed first, so that no other process finds it; if another process appended to it just before, it is
    renamed back. An object store can't rename: there an empty lake stays.
    """
    if not isinstance(path, Path):
        return
    if _has_records(path):
        return
    aside = path.with_name(f".{path.name}.{uuid.uuid4()}.discarded")
    try:
        path.rename(aside)
        if _has_records(aside):
            aside.rename(path)
            return
    except OSError:
        return
    shutil.rmtree(aside, ignore_errors=True)
    if keep_folder:
        path.mkdir(mode=0o700, exist_ok=True)


def _has_records(path: Location) -> bool:
    from kraftlake.metadata_log.log import MetadataLog

    try:
        log = MetadataLog.open(path)
    except KraftlakeError:
        return False
    return log.end_offset > log.start_offset


def remove_empty_folders(path: Location) -> None:
    """Remove the empty folders of a lake that could not be created."""
    if not isinstance(path, Path):
        return
    with contextlib.suppress(OSError):
        for folder in (path / "log" / "_delta_log", path / "log", path):
            folder.rmdir()
