"""The fold: from a base over the log to an image, or to one metadata delta between two offsets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.reading.chunks import bulk_chunks, chunks_of_snapshot
from kraftlake.replay.reading.open_reader import LakeReader, LogReader, SnapshotReader
from kraftlake.replay.reading.progress import LOADING, REPLAYING, Progress, with_progress
from kraftlake.replay.reading.replay_base import check_covered, choose_base, readable_batches, snapshot_provenance
from kraftlake.runtime.arguments import whole

if TYPE_CHECKING:
    from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
    from kraftlake.replay.loader.image_cache import CachedImage
    from kraftlake.replay.loader.manifest import SkippedRecord


@attrs.frozen(kw_only=True)
class Replay:
    """An image and what it was replayed from.

    `base` names the snapshot that the replay started from (None: the empty image); `skipped` are the records that a
    lenient replay left out; `quorum` is the state of the quorum by the control records that were read.
    `open_since` is the first offset of the metadata transaction that is open at the image's offset: none of its records
    is in the image. `aborted` are the first and last offset of the newest aborted transaction that was read.
    """

    image: MetadataImage
    base: str | None
    skipped: tuple[SkippedRecord, ...]
    quorum: QuorumState
    open_since: int | None = None
    aborted: tuple[int, int] | None = None

    @property
    def diverged(self) -> bool:
        """Whether records were skipped, so that the image is not what the cluster had."""
        return bool(self.skipped)


def load_snapshot(loader: MetadataBatchLoader, snapshot: SnapshotReader, *, progress: Progress | None = None) -> None:
    """Gather a whole snapshot in the loader's delta, and move the loader to the snapshot's last offset."""
    parts = with_progress(chunks_of_snapshot(snapshot), progress, LOADING)
    loader.load_snapshot(parts, snapshot_provenance(snapshot), name=snapshot.name)


def extend(
    loader: MetadataBatchLoader,
    reader: LogReader,
    to: int,
    *,
    base: SnapshotReader | None = None,
    progress: Progress | None = None,
) -> None:
    """Gather `base`, if there is one, and the log after the loader's last offset up to and including `to`."""
    if base is not None:
        load_snapshot(loader, base, progress=progress)
    chunks = bulk_chunks(reader, loader.last_offset + 1, to)
    if chunks is not None:
        from kraftlake.runtime.prefetching import prefetch

        with prefetch(chunks) as fetched:
            for chunk in with_progress(fetched, progress, REPLAYING, to + 1):
                if isinstance(chunk, RecordBatch):
                    loader.load_batch(chunk, to_offset=to)
                else:
                    loader.load_values(chunk, to_offset=to)
    if loader.last_offset < to:
        batches = readable_batches(reader, loader.last_offset + 1, to, loader.lost)
        for batch in with_progress(batches, progress, REPLAYING, to + 1):
            loader.load_batch(batch, to_offset=to)


def image_at(reader: LogReader, at: int, *, from_snapshot: bool | None = None) -> Replay:
    """The image after offset `at`; raises as `loader_at`."""
    return finish(loader_at(reader, at, from_snapshot=from_snapshot))


def loader_at(
    reader: LogReader,
    at: int,
    *,
    from_snapshot: bool | None = None,
    in_one_delta: bool = False,
    lenient: bool = False,
    progress: Progress | None = None,
) -> MetadataBatchLoader:
    """A loader that has gathered everything up to and including offset `at`; -1 is the empty image.

    It may start from an image that a lake keeps as columns; `in_one_delta` starts from the empty image, so that the
    loader's delta holds all changes. Raises OffsetError where `at` has no image, and what the loader raises.
    """
    if whole(at) < 0:
        return MetadataBatchLoader(lenient=lenient)
    cached: CachedImage | None = None

    def has_columns(snapshot: SnapshotReader) -> bool:
        nonlocal cached
        cached = None if in_one_delta else cached_image(reader, snapshot)
        return cached is not None

    base = choose_base(reader, at, from_snapshot=from_snapshot, known_as_sound=has_columns, lenient=lenient)
    if base is None or cached is None:
        loader = MetadataBatchLoader(lenient=lenient)
    else:
        loader = MetadataBatchLoader(cached.image, lenient=lenient, quorum=cached.quorum)
        loader.base_name, base = base.name, None
    extend(loader, reader, at, base=base, progress=progress)
    return loader


def cached_image(reader: LogReader, base: SnapshotReader) -> CachedImage | None:
    """The image of a snapshot that a lake keeps as columns; None where it keeps none, and of all other sources."""
    if not isinstance(reader, LakeReader) or not isinstance(reader.log.path, Path):
        return None  # an object store is no place for a cache
    from kraftlake.replay.loader.image_cache import load_cached

    return load_cached(reader.log.path, cast("LakeSnapshot", base))


def snapshot_image(snapshot: SnapshotReader) -> Replay:
    """The image that a snapshot holds."""
    loader = MetadataBatchLoader()
    load_snapshot(loader, snapshot)
    return finish(loader)


def finish(loader: MetadataBatchLoader) -> Replay:
    """Apply the records that the loader has gathered."""
    image = loader.take_image()
    return Replay(
        image=image,
        base=loader.base_name,
        skipped=tuple(loader.skipped),
        quorum=loader.quorum,
        open_since=loader.transaction_begin_offset,
        aborted=loader.transaction.aborted,
    )


def changes_between(
    reader: LogReader,
    from_offset: int,
    to_offset: int,
    *,
    from_snapshot: bool | None = None,
    lenient: bool = False,
    progress: Progress | None = None,
) -> MetadataBatchLoader:
    """A loader that has gathered one metadata delta of the offsets (from_offset, to_offset].

    The delta is on the image at `from_offset`; -1 is the empty image.

    A transaction that is open at `from_offset` takes effect in the delta, at its end. From -1 on a log that starts
    above 0, the delta holds the snapshot that covers the start.
    """
    if from_offset < 0:
        return loader_at(
            reader, to_offset, from_snapshot=from_snapshot, in_one_delta=True, lenient=lenient, progress=progress
        )
    check_covered(reader, from_offset, to_offset)
    loader = loader_at(reader, from_offset, from_snapshot=from_snapshot, lenient=lenient, progress=progress)
    loader.take_image()
    extend(loader, reader, to_offset, progress=progress)
    return loader
