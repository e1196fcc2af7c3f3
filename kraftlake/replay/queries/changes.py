"""The changes of a log, one by one: a metadata delta for each log batch, one for a whole metadata transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import load_snapshot, loader_at
from kraftlake.replay.loader.manifest import LogDeltaManifest, SkippedRecord
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.replay.reading.replay_base import check_unbroken, choose_base, first_image_offset, readable_batches
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


class LogChanges:
    """The published changes whose last offset is in [from_offset, to_offset], in order; None is as far as the log goes.

    To be iterated once. Where `from_offset` is None and the log starts above 0, the first change is the load of the
    snapshot that covers its start. Batches of nothing but no-op records are no change. `skipped` grows with what a
    lenient replay leaves out.

    Raises OffsetError where the log lacks one of the offsets or an image to start from, BrokenFileError where offsets
    between them are missing, UsageError for a range that runs backwards; while it is iterated, what the replay of a
    record raises. A lenient one passes over what is missing or damaged.
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
        if from_offset is not None and to_offset is not None and from_offset > to_offset:
            raise UsageError(f"The range from offset {from_offset} to {to_offset} runs backwards.")
        for offset in (from_offset, to_offset):
            if offset is not None and not reader.start_offset <= offset < reader.end_offset:
                raise OffsetError(
                    f"Offset {offset} is not in the log of {reader.name}, which holds offsets "
                    f"{reader.start_offset} to {reader.end_offset - 1}."
                )
        self._reader = reader
        self._to_offset = reader.end_offset - 1 if to_offset is None else to_offset
        self._published: list[Published] = []
        self._of_snapshot = False
        self.loader = self._begin(from_offset, lenient=lenient, cluster_id=cluster_id)
        """The loader behind the changes; before the iteration its position is before the first change of the log."""
        if not lenient:
            check_unbroken(reader, self.loader.last_offset + 1, self._to_offset)

    def __repr__(self) -> str:
        return f"<LogChanges of {self._reader.name} after offset {self.loader.last_offset} to {self._to_offset}>"

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that were skipped so far."""
        return self.loader.skipped

    def __iter__(self) -> Iterator[Published]:
        """Each change as it is replayed."""
        loader = self.loader
        yield from self._taken()
        if loader.last_offset < self._to_offset:
            for batch in readable_batches(self._reader, loader.last_offset + 1, self._to_offset, loader.lost):
                if self._is_quiet(batch):
                    loader.pass_over(_end_of(batch))
                    continue
                loader.load_batch(batch, to_offset=self._to_offset)
                loader.flush()
                yield from self._taken()

    def _begin(self, from_offset: int | None, *, lenient: bool, cluster_id: str | None) -> MetadataBatchLoader:
        reader = self._reader
        if from_offset:
            loader = loader_at(reader, from_offset - 1, lenient=lenient)
            loader.cluster_id = cluster_id
            loader.take_image()
            loader.publish_to(self._publish)
            return loader
        loader = MetadataBatchLoader(lenient=lenient, publish=self._publish)
        loader.cluster_id = cluster_id
        if from_offset is None and reader.start_offset > 0:
            # raises where there is no such image, and says which there are
            choose_base(reader, self._to_offset, lenient=lenient)
            first = first_image_offset(reader, reader.start_offset - 1)
            base = None if first is None else choose_base(reader, first)
            assert base is not None, "a log that starts above 0 has images from a snapshot on alone"
            self._of_snapshot = True
            load_snapshot(loader, base)
            loader.flush()
            self._of_snapshot = False
        return loader

    def _publish(self, delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        self._published.append(Published(delta, image, manifest, self._of_snapshot))

    def _taken(self) -> Sequence[Published]:
        published, self._published = self._published, []
        return published

    def _is_quiet(self, batch: RecordBatch) -> bool:
        """Whether the next batch has no-op records only and lies within the range."""
        loader = self.loader
        return (
            not batch.control
            and not loader.in_transaction
            and batch.base_offset <= loader.last_offset + 1
            and batch.last_offset <= self._to_offset
            and batch.epoch >= loader.provenance.epoch
            and all(value[1:] == _NO_OP for value in batch.values)
        )


_NO_OP = bytes((NoOpRecord.API_KEY, 0, 0))
"""A no-op record's value after the frame's version: type, version, no tagged fields."""


def _end_of(batch: RecordBatch) -> MetadataProvenance:
    return MetadataProvenance(
        offset=batch.last_offset, epoch=batch.epoch, timestamp=batch.timestamp, batch_aligned=True
    )
