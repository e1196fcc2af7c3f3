"""Writes a bundle: a .tar.gz with Kafka's own files, a SOURCE of every command and a log directory of a node."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final

from kraftlake.kafka_files.file_names import META_PROPERTIES, METADATA_DIRECTORY, segment_name, snapshot_name
from kraftlake.kafka_files.node.meta_properties import meta_properties
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.replay.bundle.bundle_plan import BundlePlan
from kraftlake.replay.bundle.key_file import write_key
from kraftlake.runtime.arguments import path_text
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.whole_file import PART, check_folder_of, sync_folder

_SEGMENT_BYTES: Final = 1 << 30
"""The size from which on a new segment begins (metadata.log.segment.bytes)."""
_CONTENTS: Final = "bundle.json"


def write_bundle(
    plan: BundlePlan, target: str | os.PathLike[str], *, key_file: str | os.PathLike[str] | None = None
) -> int:
    """Write the bundle, and first the `key_file` of its pseudonyms; returns the size in bytes.

    The bundle appears whole or not at all; a file at `target` is replaced. Raises EnvironmentFaultError where the disk
    refuses.
    """
    path = Path(path_text(target))
    check_folder_of(path)
    if plan.pseudonyms is not None and key_file is not None:
        write_key(key_file, plan.pseudonyms)
    parent = path.absolute().parent
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=f"{path.name}.", suffix=PART) as made:
            archive = Path(made, "bundle")
            with os.fdopen(os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    _write(plan, packed, Path(made))
                file.flush()
                os.fsync(file.fileno())
            size = archive.stat().st_size
            archive.replace(path)
            sync_folder(parent)
    except OSError as fault:
        raise EnvironmentFaultError(f"{path} can't be written: {fault.strerror or fault}.") from None
    return size


def _write(plan: BundlePlan, packed: gzip.GzipFile, folder: Path) -> None:
    with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        _add_bytes(archive, _CONTENTS, json.dumps(plan.to_json(), indent=1).encode())
        if plan.cluster_id is not None:
            content = meta_properties(cluster_id=plan.cluster_id, node_id=plan.node_id, directory_id=plan.directory_id)
            _add_bytes(archive, META_PROPERTIES, content)
        for snapshot, batches in plan.snapshot_batches():
            _add_log_file(archive, snapshot_name(snapshot.end_offset, snapshot.epoch), batches, folder)
        for base_offset, batches in groupby(plan.batches(), _SegmentOf()):
            _add_log_file(archive, segment_name(base_offset), batches, folder)


class _SegmentOf:
    """Returns the base offset of the segment that a batch belongs to; batches come in order."""

    def __init__(self) -> None:
        self._base_offset = self._next = -1
        self._size = 0

    def __call__(self, batch: RecordBatch) -> int:
        if batch.base_offset != self._next or self._size >= _SEGMENT_BYTES:
            self._base_offset, self._size = batch.base_offset, 0
        self._next = batch.last_offset + 1
        self._size += batch.payload_bytes
        return self._base_offset


def _add_log_file(archive: tarfile.TarFile, name: str, batches: Iterable[RecordBatch], folder: Path) -> None:
    """Add a file of batches, made in `folder` before: an archive has a member's size before its bytes."""
    with tempfile.TemporaryFile(dir=folder) as file:
        size = sum(file.write(encode_batch(batch)) for batch in batches)
        file.seek(0)
        archive.addfile(_info(f"{METADATA_DIRECTORY}/{name}", size), file)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_info(name, len(content)), io.BytesIO(content))


def _info(name: str, size: int) -> tarfile.TarInfo:
    """A member that says nothing of the machine: no owner, no time."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o600
    return info
