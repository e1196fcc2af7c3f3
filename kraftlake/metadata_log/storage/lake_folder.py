"""The folder of a lake: readable by its owner only, and never created over other files."""

from __future__ import annotations

from pathlib import Path

from kraftlake.metadata_log.delta_table.commit import disk_fault
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER
from kraftlake.metadata_log.storage.disk import FOLDER_MODE, Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.errors import LakeError


def make_lake_folder(path: Location, disk: Disk, first_table: str) -> None:
    """Make the folder, or take one that is empty or holds only what an interrupted creation leaves.

    `first_table` is the table that a lake begins with. Raises LakeError when something else is in the way or the disk
    refuses.
    """
    try:
        if isinstance(path, ObjectPath):
            if path.is_dir():
                raise LakeError(f"{path} is in the way: a new lake needs a prefix that holds nothing.")
            return
        table = next((folder for folder in path.absolute().parents if (folder / LOG_FOLDER).is_dir()), None)
        if table is not None:
            raise LakeError(
                f"{path} lies in the Delta table {table}, whose clean-up might delete it: make the lake elsewhere."
            )
        if path.is_symlink() or path.exists():
            if not path.is_dir() or not all(_is_left_over(path, entry, first_table) for entry in path.rglob("*")):
                raise LakeError(f"{path} is in the way: a new lake needs an empty folder, or none.")
            path.chmod(FOLDER_MODE)
        elif not path.parent.is_dir():
            raise LakeError(f"{path} can't be made: {path.parent} is no folder; make it first.")
        else:
            disk.make_folder(path)
        disk.fsync(path.parent)
    except OSError as fault:
        raise disk_fault(path, fault) from fault


def was_begun(path: Location, first_table: str) -> bool:
    """Whether a folder holds what an interrupted creation of a lake leaves, and nothing else."""
    if isinstance(path, ObjectPath) or not path.is_dir():
        return False
    entries = list(path.rglob("*"))
    return bool(entries) and all(_is_left_over(path, entry, first_table) for entry in entries)


def _is_left_over(lake: Path, entry: Path, first_table: str) -> bool:
    """Whether a creation that didn't get to its commit may have left this: folders, and commits under other names.

    A creation never leaves a symbolic link; a foreign one would choose where the lake's secrets are written.
    """
    delta_log = lake / first_table / LOG_FOLDER
    if entry.is_symlink():
        return False
    if entry.is_dir():
        return entry in (lake / first_table, delta_log)
    return entry.parent == delta_log and entry.name.startswith(".") and entry.suffix == ".tmp"
