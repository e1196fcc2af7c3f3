"""The changes of a log, one by one: a metadata delta for each log batch, one for a whole metadata transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import load_snapshot, loader_at
from kraftlake.replay.loader.manifest import LogDeltaManifest, SkippedRecord
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.replay_base import (
    check_unbroken,
    choose_base,
    first_image_offset,
    has_beginning,
    readable_batches,
)
from kraftlake.runtime.errors import OffsetError, UsageError


@attrs.frozen
class Published:
    """A change of the image that was published: of a log batch, or of a whole metadata transaction at its end.

    `delta` has led from `before` to `image`. Batches of nothing but no-op records are not published: `before` is the
    image after those.
    `of_snapshot`: it is the load of the snapshot that covers the start of a log which starts above 0.
    """

    delta: MetadataDelta
    image: MetadataImage
    manifest: LogDeltaManifest
    of_snapshot: bool = False

    @property
    def before(self) -> MetadataImage:
        """The image before the change."""
        return self.delta.image

    @property
    def offset(self) -> int:
        """The last offset of the change: of a log batch, or of the EndTransactionRecord of a transaction."""
        return self.manifest.provenance.offset

    @property
    def epoch(self) -> int:
        """The epoch of that offset's batch."""
        return self.manifest.provenance.epoch

    @property
    def timestamp(self) -> int | None:
        """The time of that offset's batch in epoch microseconds, None where it has none."""
        timestamp = self.manifest.provenance.timestamp
        return None if timestamp < 0 else timestamp * 1000

    @property
    def elected(self) -> int | None:
        """The controller that leads the quorum since this change; None where it did not change or is unknown."""
        is_new = not self.of_snapshot and self.epoch != self.before.provenance.epoch
        return self.manifest.leader_id if is_new else None


class ChangeFold:
    """Replays the batches of a log one by one, and gives what each changes; keeps nothing but the newest image.

    Its changes are those of `LogChanges`, for batches that come from anywhere. Does no I/O.
    """

    def __init__(self, loader: MetadataBatchLoader) -> None:
        """`loader` has the image that the first batch follows, and nothing gathered."""
        self.loader = loader
        """The loader behind the changes."""
        self._published: list[Published] = []
        loader.publish_to(self._publish)

    @classmethod
    def after(cls, reader: LogReader, offset: int, *, cluster_id: str | None = None) -> ChangeFold:
        """Begin with the image at an offset; -1 is the empty one. Raises as `loader_at` does."""
        return cls(_loader_behind(reader, offset, cluster_id=cluster_id))

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that were left out so far."""
        return self.loader.skipped

    def take(self, batch: RecordBatch, *, to_offset: int | None = None) -> Sequence[Published]:
        """The changes of the next batch, or of its records up to and including `to_offset`; none of a quiet one.

        A batch in mid-transaction has none, one with transaction marks may have two. Raises what
        `MetadataBatchLoader.load_batch` raises.
        """
        if (to_offset is None or batch.last_offset <= to_offset) and self.loader.passes_over(batch):
            return ()
        self.loader.load_batch(batch, to_offset=to_offset)
        self.loader.flush()
        return self._taken()

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        self._published.append(Published(delta, image, manifest))

    def _taken(self) -> Sequence[Published]:
        published, self._published = self._published, []
        return published


class LogChanges(ChangeFold):
    """The published changes whose last offset is in [from_offset, to_offset], in order; None is as far as the log goes.

    Iterate once. Where `from_offset` is None and the log starts above 0, the first change is the load of the snapshot
    that covers its start. Batches with no-op records only are not changes. `skipped` grows with the records that a
    lenient replay leaves out.

    Raises OffsetError where the log lacks one of the offsets or an image to start from, BrokenFileError where offsets
    between them are missing, UsageError for a range that runs backwards; during the iteration, the errors of replaying
    a record. A lenient replay skips missing and damaged offsets.
    """

    def __init__(
        self,
        reader: LogReader,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        lenient: bool = False,
        cluster_id: str | None = None,
    ) -> None:
        after = begin_of_range(reader, from_offset, to_offset, lenient=lenient)
        is_load = from_offset is None and after >= 0
        super().__init__(_loader_behind(reader, -1 if is_load else after, lenient=lenient, cluster_id=cluster_id))
        self._reader = reader
        self._to_offset = reader.end_offset - 1 if to_offset is None else to_offset
        if is_load:
            base = choose_base(reader, after)
            assert base is not None, "a log without its beginning has images from a snapshot on alone"
            load_snapshot(self.loader, base)
            self.loader.flush()
            self._published = [attrs.evolve(one, of_snapshot=True) for one in self._published]
        if not lenient:
            check_unbroken(reader, after + 1, self._to_offset)

    def __repr__(self) -> str:
        return f"<LogChanges of {self._reader.name} after offset {self.loader.last_offset} to {self._to_offset}>"

    def __iter__(self) -> Iterator[Published]:
        """Each change as it is replayed."""
        loader = self.loader
        yield from self._taken()
        if loader.last_offset < self._to_offset:
            for batch in readable_batches(self._reader, loader.last_offset + 1, self._to_offset, loader.lost):
                yield from self.take(batch, to_offset=self._to_offset)


def _loader_behind(
    reader: LogReader, offset: int, *, lenient: bool = False, cluster_id: str | None
) -> MetadataBatchLoader:
    """A loader that has the image at an offset, and nothing gathered."""
    loader = loader_at(reader, offset, lenient=lenient)
    loader.cluster_id = cluster_id
    if offset >= 0:
        loader.take_image()
    return loader


def begin_of_range(reader: LogReader, from_offset: int | None, to_offset: int | None, *, lenient: bool = False) -> int:
    """The offset, of an image of the log, after which the changes of a range begin; -1 is the empty image.

    Where `from_offset` is None and the log starts above 0, the offset is that of the snapshot that covers its start.
    Raises as `LogChanges` does at once.
    """
    if from_offset is not None and to_offset is not None and from_offset > to_offset:
        raise UsageError(f"The range from offset {from_offset} to {to_offset} runs backwards.")
    for offset in (from_offset, to_offset):
        if offset is not None and not reader.start_offset <= offset < reader.end_offset:
            raise OffsetError(
                f"Offset {offset} is not in the log of {reader.name}, which holds offsets "
                f"{reader.start_offset} to {reader.end_offset - 1}."
            )
    last, after = reader.end_offset - 1 if to_offset is None else to_offset, (from_offset or 0) - 1
    if from_offset is None and not has_beginning(reader):
        # raises where there is no such image, and says which there are
        choose_base(reader, last, lenient=lenient)
        first = first_image_offset(reader, reader.start_offset - 1)
        assert first is not None, "there is an image further on"
        after = first
    return after
