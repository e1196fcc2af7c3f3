"""Creation of a lake, empty or with contents, atomically."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from kraftlake.metadata_log.append.log_commit import commit_groups, end_facts, file_that_follows
from kraftlake.metadata_log.append.log_file import STATISTICS_COLUMNS, LogEnd
from kraftlake.metadata_log.delta_table.commit import CommitConflictError, UnknownOutcomeError, create_table
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, is_there, read_table
from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER, TableState
from kraftlake.metadata_log.log_facts import (
    CLUSTER_ID,
    LOG_TABLE,
    NO_EPOCH,
    ROLE,
    ROLES,
    SNAPSHOTS_TABLE,
    START_OFFSET,
)
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.snapshots.snapshot_table import SnapshotTable
from kraftlake.metadata_log.storage.disk import FOLDER_MODE, Disk, disk_fault, is_probe
from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.runtime.errors import LakeError, UsageError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


@attrs.frozen(kw_only=True)
class Contents:
    """The contents of a new lake: batches that continue from its start offset without a gap, and snapshots.

    Each snapshot includes all of its batches, control batches too.
    """

    batches: Iterable[RecordBatch | BatchValues] = ()
    snapshots: Iterable[tuple[SnapshotFacts, Iterable[RecordBatch | BatchValues]]] = ()


def create_lake(
    path: Location,
    disk: Disk,
    *,
    role: str,
    cluster_id: str | None,
    start_offset: int,
    contents: Contents | None = None,
) -> TableState:
    """Create a lake in an empty or missing folder whose parent exists; returns the state of its log.

    Version 0 of the log, which makes the folder a lake, is written last and holds all of the contents. Raises LakeError
    if a lake or anything else already exists, or if the disk refuses; ImportConflictError for contents with a gap.
    """
    if role not in ROLES or start_offset < 0:
        raise UsageError(f"A lake's role is one of {', '.join(ROLES)} and its start offset at least 0.")
    # A missing version 0 proves nothing: an old lake's may have been cleaned up behind a checkpoint.
    with contextlib.suppress(NotADeltaTableError):
        read_table(path / LOG_TABLE)
        raise LakeError(f"There is a lake at {path} already.")
    was_there = is_there(path)
    _make_folder(path, disk)
    try:
        if contents or isinstance(path, ObjectPath):
            check_store(path, disk)
    except LakeError:
        _remove_empty(path / LOG_TABLE / LOG_FOLDER, path / LOG_TABLE, *([] if was_there else [path]))
        raise
    configuration = {ROLE: role, START_OFFSET: str(start_offset)}
    if cluster_id is not None:
        configuration[CLUSTER_ID] = cluster_id
    with _emptied_on_failure(path, keep_folder=was_there) if contents else contextlib.nullcontext():
        try:
            return create_table(
                disk,
                path / LOG_TABLE,
                name="metadata_log",
                schema=LOG_SCHEMA,
                statistics_columns=STATISTICS_COLUMNS,
                configuration=configuration,
                contents=_written(path, disk, start_offset, contents) if contents else (),
            )
        except CommitConflictError as fault:
            raise LakeError(f"There is a lake at {path} already.") from fault


def _written(path: Location, disk: Disk, start_offset: int, contents: Contents) -> list[dict[str, object]]:
    """Write the contents' files; returns the actions that add those of the log."""
    table = path / LOG_TABLE
    try:
        disk.make_folder(table)
    except OSError as fault:
        raise disk_fault(table, fault) from fault
    actions: list[dict[str, object]] = []
    end = LogEnd(end_offset=start_offset, epoch=NO_EPOCH, chain=None)
    for group in commit_groups(contents.batches):
        file = file_that_follows(end, to_rows(group))
        assert file is not None, "a batch has records"
        actions.append(file.write(disk, table).to_action())
        end = file.end
    snapshots = SnapshotTable.open_or_create(path / SNAPSHOTS_TABLE, disk)
    for facts, batches in contents.snapshots:
        snapshots.add(to_rows(batches), facts)
    return [*end_facts(end, chain_start=start_offset), *actions] if actions else []


@contextlib.contextmanager
def _emptied_on_failure(path: Location, *, keep_folder: bool) -> Iterator[None]:
    """Remove the files of a lake whose creation on a disk failed, unless the lake may exist after all."""
    try:
        yield
    except UnknownOutcomeError:
        raise
    except BaseException:
        if isinstance(path, Path) and not any((path / LOG_TABLE / LOG_FOLDER).glob("*.json")):
            for table in (path / LOG_TABLE, path / SNAPSHOTS_TABLE):
                shutil.rmtree(table, ignore_errors=True)
            if not keep_folder:
                with contextlib.suppress(OSError):
                    path.rmdir()
        raise


def _make_folder(path: Location, disk: Disk) -> None:
    """Create the folder, or reuse one that is empty or holds only the leftovers of an interrupted creation.

    Only its owner has access to the folder. Raises LakeError if the folder has other content, or if the disk refuses.
    """
    try:
        if isinstance(path, ObjectPath):
            if any(not is_probe(found.name) for found in path.walk()):
                raise LakeError(f"{path} is in the way: a new lake needs a prefix that holds nothing.")
            return
        table = next((folder for folder in path.absolute().parents if (folder / LOG_FOLDER).is_dir()), None)
        if table is not None:
            raise LakeError(
                f"{path} lies in the Delta table {table}, whose clean-up might delete it: make the lake elsewhere."
            )
        if path.is_symlink() or path.exists():
            if not path.is_dir() or not all(_is_left_over(path, entry) for entry in path.rglob("*")):
                raise LakeError(f"{path} is in the way: a new lake needs an empty folder, or none.")
            path.chmod(FOLDER_MODE)
        elif not path.parent.is_dir():
            raise LakeError(f"{path} can't be made: {path.parent} is no folder; make it first.")
        else:
            disk.make_folder(path)
        disk.fsync(path.parent)
    except OSError as fault:
        raise disk_fault(path, fault) from fault


def check_store(path: Location, disk: Disk) -> None:
    """Check that commits can't overwrite each other, before anything is written.

    Raises LakeError if they can, and if the disk refuses.
    """
    log = path / LOG_TABLE / LOG_FOLDER
    try:
        disk.make_folder(path / LOG_TABLE)
        disk.make_folder(log)
        disk.check_put_if_absent(log)
    except OSError as fault:
        raise disk_fault(log, fault) from fault


def _remove_empty(*folders: Location) -> None:
    """Remove the empty folders of a disk, the inner ones first."""
    for folder in folders:
        if isinstance(folder, Path):
            with contextlib.suppress(OSError):
                folder.rmdir()


def was_begun(path: Location) -> bool:
    """Whether a folder holds only leftovers of an interrupted creation of a lake."""
    if isinstance(path, ObjectPath) or not path.is_dir():
        return False
    entries = list(path.rglob("*"))
    return bool(entries) and all(_is_left_over(path, entry) for entry in entries)


def _is_left_over(lake: Path, entry: Path) -> bool:
    """Whether an entry may be a leftover of a creation interrupted before its commit: a folder or a temporary file.

    A creation never leaves a symbolic link; a foreign one would choose where the lake's secrets are written.
    """
    delta_log = lake / LOG_TABLE / LOG_FOLDER
    if entry.is_symlink():
        return False
    if entry.is_dir():
        return entry in (lake / LOG_TABLE, delta_log)
    return entry.parent == delta_log and entry.name.startswith(".") and entry.suffix == ".tmp"
