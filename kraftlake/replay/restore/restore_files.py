"""Writes a planned restore: a log directory for each controller, all of them or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kraftlake.kafka_files.file_names import METADATA_DIRECTORY
from kraftlake.kafka_files.node.meta_properties import write_meta_properties
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.replay.restore.restore_plan import RestorePlan
from kraftlake.runtime.arguments import instance, path_text
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.whole_file import check_folder_of, sync_folder, write_whole

_CHUNK: Final = 1 << 20


def check_target(target: str | os.PathLike[str]) -> Path:
    """The path of a new folder; raises EnvironmentFaultError where it holds anything, or its folder does not exist."""
    path = Path(path_text(target))
    check_folder_of(path)
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise EnvironmentFaultError(f"{path} exists already: nothing is overwritten, name a new folder.")
    return path


def write_restore(plan: RestorePlan, target: str | os.PathLike[str]) -> int:
    """Write `ID/meta.properties` and `ID/__cluster_metadata-0/….checkpoint` for each voter; returns a snapshot's size.

    The files are made in a temporary folder beside `target`, for their owner only, and appear there at once; the
    snapshots hold all secrets. Raises as `check_target`, UnwritableMetadataError for state that the image's
    metadata.version can't express, EnvironmentFaultError where the disk refuses; no files remain then.
    """
    instance(plan, RestorePlan, "a planned restore")
    path = check_target(target)
    parent = path.absolute().parent
    try:
        made = Path(tempfile.mkdtemp(dir=parent, prefix=f"{path.name}.", suffix=".part"))
        try:
            size = _write(plan, made)
            made.rename(path)
            sync_folder(parent)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise EnvironmentFaultError(f"{path} can't be written: {reason}") from None
    return size


def _write(plan: RestorePlan, folder: Path) -> int:
    size = 0
    first: Path | None = None
    for voter in plan.voters:
        log = folder / str(voter.id) / METADATA_DIRECTORY
        for each in (log.parent, log):
            each.mkdir(mode=0o700)
        write_meta_properties(log.parent, cluster_id=plan.cluster_id, node_id=voter.id, directory_id=voter.directory_id)
        checkpoint = log / plan.checkpoint_name
        if first is None:
            size = write_checkpoint(
                checkpoint,
                plan.image.write_bulk(plan.image.writer_options()),
                epoch=plan.image.provenance.epoch,
                timestamp=plan.image.provenance.timestamp,
                kraft_version=plan.kraft_version,
                voters=plan.voters_record,
            )
            first = checkpoint
        else:
            write_whole(checkpoint, _chunks(first))
        sync_folder(log.parent)
    sync_folder(folder)
    return size


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk
