"""A cache in a lake: the images of its large snapshots as columns, which load in milliseconds.

The snapshots' records stay the truth. A file of the cache names the snapshot it was made of: end offset, epoch, record
count, time, data files, and the checksum of the records' values that the snapshot's commit states. A file that
disagrees with its snapshot or with its own checksum is ignored, and so is one of a snapshot without a checksum. The
folder may be deleted at any time: the next import makes it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.serde import decode_control, encode_control
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.replay_base import snapshot_provenance
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.whole_file import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
    from kraftlake.metadata_log.storage.location import Location

FOLDER: Final = "image_cache"
_FORMAT = "kraftlake image columns 2"
MAGIC, HEADER_BYTES = b"KLIMAGE\x01", 64
"""How a file begins, and the size of its header, which has the CRC-32C of the rest behind that."""
_UNREADABLE: Final = (
    OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, KraftlakeError
)  # fmt: skip
"""What comes of a file that is no cached image, besides the errors of Arrow: JSON of any form, for one."""


@attrs.frozen(kw_only=True)
class CachedImage:
    """The image of a snapshot, and the state of the quorum in its control records."""

    image: MetadataImage
    quorum: QuorumState


def cache_path(lake: Path, snapshot: LakeSnapshot) -> Path:
    """The file of a snapshot's columns."""
    return lake / FOLDER / f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.arrow"


def save_columns(lake: Path, snapshot: LakeSnapshot, columns: pa.RecordBatch, quorum: QuorumState) -> None:
    """Keep the columns of a snapshot's image; raises OSError."""
    _write(cache_path(lake, snapshot), columns, _facts(snapshot) | {"quorum": quorum_to_json(quorum)})


def load_cached(lake: Path, snapshot: LakeSnapshot) -> CachedImage | None:
    """The image of a snapshot from its columns; None where there are none, or they are not this snapshot's."""
    path = cache_path(lake, snapshot)
    if snapshot.checksum is None or not os.path.isfile(path):  # noqa: PTH113 - false where the disk refuses to look
        return None
    import pyarrow as pa

    try:
        return _load(path, snapshot)
    except (*_UNREADABLE, pa.ArrowException) as fault:
        from kraftlake.runtime.log import get_logger

        get_logger(__name__).warning("image_cache_ignored", file=str(path), reason=str(fault))
        return None


def prune_cache(lake: Location, snapshots: Iterable[LakeSnapshot]) -> int:
    """Delete the files of other snapshots than these; returns their number. A file that can't be deleted stays."""
    if not isinstance(lake, Path):
        return 0
    kept, gone = {cache_path(lake, snapshot) for snapshot in snapshots}, 0
    for path in sorted((lake / FOLDER).glob("*.arrow")):
        if path not in kept:
            with suppress(OSError):
                path.unlink()
                gone += 1
    return gone


def _load(path: Path, snapshot: LakeSnapshot) -> CachedImage:
    from kraftlake.replay.loader.image_columns import image_from_arrow

    batch, facts = _read(path)
    quorum = facts.pop("quorum")
    if facts != _facts(snapshot):
        raise ValueError("it was made of other records")
    return CachedImage(image=image_from_arrow(batch, snapshot_provenance(snapshot)), quorum=quorum_from_json(quorum))


def _facts(snapshot: LakeSnapshot) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "end_offset": snapshot.end_offset,
        "epoch": snapshot.epoch,
        "record_count": snapshot.record_count,
        "last_contained_log_timestamp": snapshot.last_contained_log_timestamp,
        "checksum": snapshot.checksum,
        "files": [list(file) for file in snapshot.data_files],
    }


def quorum_to_json(quorum: QuorumState) -> dict[str, Any]:
    """The state of the quorum as JSON."""
    voters = None if quorum.voters is None else encode_control(quorum.voters)[1].hex()
    return {"leader_id": quorum.leader_id, "kraft_version": quorum.kraft_version, "voters": voters}


def quorum_from_json(form: dict[str, Any]) -> QuorumState:
    """The inverse of `quorum_to_json`; raises ValueError for other content."""
    voters = None
    if form["voters"] is not None:
        from kraftlake.records.control_records import VotersRecord

        message = decode_control(VotersRecord.API_KEY, bytes.fromhex(form["voters"])).message
        if not isinstance(message, VotersRecord):
            raise ValueError("its voters are of another version")
        voters = message
    return QuorumState(leader_id=form["leader_id"], kraft_version=form["kraft_version"], voters=voters)


def _write(path: Path, batch: pa.RecordBatch, facts: dict[str, Any]) -> None:
    """A header with the checksum of the rest, then an Arrow file: whole under its name, or not there."""
    from kraftlake.records.crc32c import crc32c
    from kraftlake.replay.loader.image_columns import to_file

    content = to_file(batch, facts)
    header = (MAGIC + crc32c(content).to_bytes(4, "big")).ljust(HEADER_BYTES, b"\0")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, (header, memoryview(content)))


def _read(path: Path) -> tuple[pa.RecordBatch, dict[str, Any]]:
    import pyarrow as pa

    from kraftlake.records.crc32c import crc32c
    from kraftlake.replay.loader.image_columns import from_file

    with pa.memory_map(str(path)) as mapped:
        buffer = mapped.read_buffer()
    header, content = bytes(memoryview(buffer)[:HEADER_BYTES]), buffer.slice(min(HEADER_BYTES, len(buffer)))
    if not header.startswith(MAGIC) or int.from_bytes(header[8:12], "big") != crc32c(content):
        raise ValueError("it is damaged")
    return from_file(content)
