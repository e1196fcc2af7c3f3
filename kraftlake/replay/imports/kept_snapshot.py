"""An image as a snapshot of a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.open_reader import SnapshotReader

if TYPE_CHECKING:
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.replay.reading.chunks import Chunk


def keep_snapshot(log: MetadataLog, image: MetadataImage, quorum: QuorumState | None = None) -> int | None:
    """Add `image` to table `snapshots` in one commit; `quorum` is written in the snapshot's header.

    Returns the bytes of its values, control records included; None when the lake has that snapshot already. Raises
    UnwritableMetadataError for state that its metadata.version can't write, and the errors of `add_snapshot`.
    """
    options = image.writer_options()
    at, quorum = image.provenance, quorum or QuorumState()
    counted = _Counted()
    batches = checkpoint_batches(
        image.write_bulk(options),
        epoch=at.epoch,
        timestamp=at.timestamp,
        kraft_version=quorum.kraft_version,
        voters=quorum.voters,
    )
    facts = SnapshotFacts(end_offset=at.offset + 1, epoch=at.epoch, last_contained_log_timestamp=at.timestamp)
    made = log.add_snapshot(facts, counted.of(batches))
    return counted.payload_bytes if made else None


def facts_of(snapshot: SnapshotReader) -> SnapshotFacts:
    """The facts about a snapshot of any source that a lake keeps besides its records."""
    return SnapshotFacts(
        end_offset=snapshot.end_offset,
        epoch=snapshot.epoch,
        last_contained_log_timestamp=snapshot.last_contained_log_timestamp,
        size_in_bytes=snapshot.size_in_bytes,
    )


class _Counted:
    """Counts the bytes of the values in the chunks that pass through."""

    def __init__(self) -> None:
        self.payload_bytes = 0

    def of(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The same chunks."""
        for chunk in chunks:
            self.payload_bytes += chunk.payload_bytes
            yield chunk
