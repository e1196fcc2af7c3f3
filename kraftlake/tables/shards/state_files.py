"""The states of shards and of the rest between two steps, as files in the folder `_spark/state/TABLE/` of a lake.

TABLE is a table of which the run that writes them holds the lock. A task writes its shard's file under a name of its
own; the driver then names the files of all tasks in the manifest, which it replaces as a whole. Whatever the manifest
does not name was left by a task that was lost, and is deleted after the next step. The folder may be deleted between
two runs: what it lacks is made anew from a snapshot and the log.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.cluster_image import ClusterImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.crc32c import crc32c
from kraftlake.records.metadata_version import LATEST
from kraftlake.records.serde import encode_value
from kraftlake.replay.loader.image_cache import quorum_from_json, quorum_to_json
from kraftlake.replay.loader.image_columns import from_file, image_from_arrow, image_to_arrow, to_file
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.effective_records import records_of
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, LakeError
from kraftlake.tables.table_locks import JOBS_FOLDER

_FORMAT: Final = "kraftlake shards 5"
_MANIFEST: Final = "manifest.json"
_CELL: Final = pa.large_binary()
_NUMBERS: Final = ("since", "since_times", "held_sizes", "held_offsets")


@attrs.frozen(kw_only=True)
class StateFile:
    """A file by its path below `_spark/state/`, with the CRC-32C of its content."""

    name: str
    checksum: int


@attrs.frozen(kw_only=True)
class StateManifest:
    """The states of all shards, and then of the rest, after an offset of a log; no `files`: they are made anew.

    `log_id` is the id of the log's table. `knows_since`: the shards' states show where the state of each partition
    began as `partition_history/` does; those of tables without it may have begun with a snapshot, or before the table
    does.
    """

    log_id: str
    offset: int
    files: tuple[StateFile, ...]
    knows_since: bool


def write_state(lake: Location, name: str, state: ReplayState) -> StateFile:
    """Write the state of a shard or of the rest, durably, as a file whose name begins so: `TABLE/…`.

    Raises UnwritableMetadataError for an image that records can't express, LakeError if the disk refuses.
    """
    image, at, held = state.image, state.image.provenance, state.held
    facts = {
        "provenance": [at.offset, at.epoch, at.timestamp],
        "quorum": quorum_to_json(state.quorum),
        "delta_quorum": quorum_to_json(state.delta_quorum),
        "open_since": state.open_since,
    }
    numbers = (state.since, state.since_times, held.stops - held.starts, held.offsets)
    cells = dict(zip(_NUMBERS, (each.astype(np.int64).tobytes() for each in numbers), strict=True))
    cells["held"] = b"".join(map(held.value, range(len(held))))
    columns = image_to_arrow(image, _others(image))
    fields = [*columns.schema, *(pa.field(name, _CELL) for name in cells)]
    arrays = [*columns.columns, *(pa.array([cell], _CELL) for cell in cells.values())]
    return _write(lake, name, to_file(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)), facts))


def read_state(lake: Location, file: StateFile) -> ReplayState:
    """The state that `write_state` has written; raises LakeError for a missing or damaged file."""
    batch, facts = _read(lake, file)
    offset, epoch, timestamp = facts["provenance"]
    since, since_times, sizes, offsets = (np.frombuffer(batch.column(n)[0].as_buffer(), np.int64) for n in _NUMBERS)
    columns = batch.select(batch.schema.names[: -len(_NUMBERS) - 1])
    stops, held = np.cumsum(sizes), np.frombuffer(batch.column("held")[0].as_buffer(), np.uint8)
    return ReplayState(
        image=image_from_arrow(columns, MetadataProvenance(offset=offset, epoch=epoch, timestamp=timestamp)),
        quorum=quorum_from_json(facts["quorum"]),
        delta_quorum=quorum_from_json(facts["delta_quorum"]),
        since=since,
        since_times=since_times,
        open_since=facts["open_since"],
        held=records_of(held, stops - sizes, stops, offsets, np.full(len(sizes), -1, np.int64)),
    )


def _others(image: MetadataImage) -> list[bytes]:
    """The records of all but the topics; for brokers alone, as a shard has them, no metadata.version is needed."""
    if attrs.evolve(image, topics=TopicsImage.EMPTY, cluster=ClusterImage.EMPTY).is_empty():
        messages = [*image.cluster.write(ImageWriterOptions(metadata_version=LATEST))]
    else:
        options = image.writer_options()
        messages = [*image.write_before_topics(options), *image.write_after_topics(options)]
    return [encode_value(each.message, each.version) for each in messages]


def write_manifest(lake: Location, table: str, manifest: StateManifest) -> None:
    """Make states those from which the next step goes on, and delete all others; raises OSError."""
    disk, folder = disk_for(lake), states_of(lake)
    disk.replace(folder / table / _MANIFEST, json.dumps({"format": _FORMAT, **attrs.asdict(manifest)}).encode())
    known = {file.name for file in manifest.files}
    for name in [path.name for path in (folder / table).iterdir()]:
        if name != _MANIFEST and f"{table}/{name}" not in known:
            disk.unlink(folder / table / name)


def read_manifest(lake: Location, table: str, log_id: str) -> StateManifest | None:
    """The manifest of a table's folder; None where there is none that fits: the states are then made anew.

    It does not fit where it is another log's or another release's, or damaged; where it names files outside of the
    folder; and where a file that it names is missing, or on a disk damaged.
    """
    folder = states_of(lake) / table
    try:
        form = json.loads((folder / _MANIFEST).read_bytes())
        if form.pop("format") != _FORMAT or form["log_id"] != log_id:
            return None
        manifest = StateManifest(**form | {"files": tuple(StateFile(**file) for file in form["files"])})
        if type(manifest.offset) is not int or not all(map(partial(_is_whole, lake, table), manifest.files)):
            return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return manifest


def states_of(lake: Location) -> Location:
    """The folder of the states of a lake, with a folder for each table."""
    return lake / JOBS_FOLDER / "state"


def offset_of_states(lake: Location, table: str, log_id: str) -> int | None:
    """The offset after which the states in a table's folder are; None where it has no manifest that fits the log."""
    try:
        form = json.loads((states_of(lake) / table / _MANIFEST).read_bytes())
        fits = form["format"] == _FORMAT and form["log_id"] == log_id
        return int(form["offset"]) if fits else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def delete_states(lake: Location, table: str) -> None:
    """Delete a table's folder of states, first the manifest; raises OSError."""
    disk, folder = disk_for(lake), states_of(lake) / table
    files: list[Location] = [*folder.iterdir()]
    for path in sorted(files, key=lambda path: path.name != _MANIFEST):
        disk.unlink(path)
    if isinstance(folder, Path):
        folder.rmdir()


def _is_whole(lake: Location, table: str, file: StateFile) -> bool:
    """Whether a file of a table's folder is there, and on a disk has its checksum. Raises OSError, TypeError."""
    of, _, name = file.name.partition("/")
    if of != table or name != PurePosixPath(name).name:
        return False
    path = states_of(lake) / file.name
    return crc32c(path.read_bytes()) == file.checksum if isinstance(path, Path) else path.exists()


def _write(lake: Location, name: str, content: pa.Buffer) -> StateFile:
    file = StateFile(name=f"{name}-{os.urandom(8).hex()}.arrow", checksum=crc32c(content))
    disk, path = disk_for(lake), states_of(lake) / file.name
    try:
        for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
            disk.make_folder(folder)
        disk.write(path, memoryview(content))
        disk.fsync(path)
    except OSError as fault:
        raise LakeError(f"{path.parent} can't be written: {fault.strerror or fault}") from fault
    return file


def _read(lake: Location, file: StateFile) -> tuple[pa.RecordBatch, dict[str, Any]]:
    path = states_of(lake) / file.name
    try:
        content = path.read_bytes()
        if crc32c(content) != file.checksum:
            raise CorruptDataError("its checksum is another one")
        return from_file(pa.py_buffer(content))
    except (OSError, ValueError, LookupError, pa.ArrowException, KraftlakeError) as fault:
        raise LakeError(f"{path} is missing or damaged: delete the folder {path.parent} and run again") from fault
