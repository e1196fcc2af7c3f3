"""A metadata log, whatever holds it, and every question about it: the Python API behind `kraftlake.open`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.image import MetadataImage
from kraftlake.kafka_files import SourceKind
from kraftlake.replay.loader.fold import Replay, changes_between, image_at, snapshot_image
from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.replay_base import broken_ranges, check_unbroken, choose_base, images_end, snapshot_named
from kraftlake.replay.reading.times import last_time, offset_at, offset_since
from kraftlake.runtime.arguments import instance, path_text, text, whole, whole_or_none
from kraftlake.runtime.errors import OffsetError, UsageError

if TYPE_CHECKING:
    from kraftlake.image import ImageDiff
    from kraftlake.kafka_files.directory import BrokenRange
    from kraftlake.metadata_log import ChainLink
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.log_record import LogRecord
    from kraftlake.replay.queries.changes import LogChanges
    from kraftlake.replay.queries.export import ExportReport
    from kraftlake.replay.queries.local_changes import LocalChanges
    from kraftlake.replay.reading.progress import Progress
    from kraftlake.replay.verify.verify_report import VerifyReport


class Source:
    """A lake, a Kafka metadata directory, a segment, a snapshot file or an archive, opened by `kraftlake.open`.

    Offsets are Kafka's and inclusive; `start_offset` is the first one of the log, `end_offset` the one after the last.
    A snapshot file alone has no log: its one image is the one at `end_offset - 1`, and its records are the snapshot's
    own, with offsets that count from 0.
    """

    def __init__(self, reader: LogReader, kind: SourceKind, path: str, cluster_id: str | None) -> None:
        self.reader = reader
        self.kind = kind
        self.path = path
        self.cluster_id = cluster_id

    def __repr__(self) -> str:
        return f"<Source {self.kind.name.lower()} {self.path!r} offsets {self.start_offset} to {self.end_offset - 1}>"

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.reader.name

    @property
    def start_offset(self) -> int:
        """The first offset of the log."""
        return self.reader.start_offset

    @property
    def end_offset(self) -> int:
        """The first offset after the last whole batch of the log; of a snapshot file: after those it stands for."""
        return self.reader.end_offset

    @property
    def snapshots(self) -> tuple[SnapshotReader, ...]:
        """Every snapshot by end offset, unfinished ones and bootstrap input too."""
        return self.reader.snapshots

    @property
    def torn(self) -> object | None:
        """The torn tail of the log, None where it ends with a whole batch."""
        return getattr(self.reader, "torn", None)

    @property
    def broken_ranges(self) -> Sequence[BrokenRange]:
        """The gaps between segments and the overlaps of segments; images behind one start from a snapshot behind it."""
        return broken_ranges(self.reader, self.start_offset, self.end_offset)

    @property
    def has_offsets(self) -> bool:
        """False for a snapshot file whose name is not END-EPOCH.checkpoint: nothing else says which offset it is at."""
        return not self._is_snapshot or all(snapshot.named for snapshot in self.snapshots)

    @property
    def _is_snapshot(self) -> bool:
        return self.kind is SourceKind.SNAPSHOT

    def batches(self, from_offset: int | None = None, to_offset: int | None = None) -> Iterator[RecordBatch]:
        """The whole batches that hold any offset in [from_offset, to_offset], in order."""
        from_offset, to_offset = whole_or_none(from_offset), whole_or_none(to_offset)
        if self._is_snapshot:
            (snapshot,) = self.snapshots
            for batch in snapshot.batches():
                if (from_offset is None or batch.last_offset >= from_offset) and (
                    to_offset is None or batch.base_offset <= to_offset
                ):
                    yield batch
        else:
            start = self.start_offset if from_offset is None else from_offset
            yield from self.reader.batches(start, to_offset)

    def records(
        self,
        from_offset: int | None = None,
        to_offset: int | None = None,
        types: Iterable[str] | None = None,
    ) -> Iterator[LogRecord]:
        """The records at the offsets [from_offset, to_offset], control records and no-ops included.

        `types` are names such as TOPIC_RECORD or LEADER_CHANGE; None is all of them. Raises OffsetError at once where
        an offset is not in the source, BrokenFileError where offsets between them are missing, UsageError where the
        range runs backwards or a type does not exist.
        """
        from kraftlake.replay.queries.record_types import checked_types

        from_offset, to_offset = whole_or_none(from_offset), whole_or_none(to_offset)
        if from_offset is not None and to_offset is not None and from_offset > to_offset:
            raise UsageError(f"The range from offset {from_offset} to {to_offset} runs backwards.")
        self._check_held(from_offset, to_offset)
        if not self._is_snapshot:
            last = self.end_offset - 1 if to_offset is None else to_offset
            check_unbroken(self.reader, self.start_offset if from_offset is None else from_offset, last)
        return self._records(from_offset, to_offset, checked_types(types))

    def _records(self, first: int | None, last: int | None, types: frozenset[str] | None) -> Iterator[LogRecord]:
        from kraftlake.records.log_record import log_records

        for batch in self.batches(first, last):
            for record in log_records(batch):
                wanted = (first is None or record.offset >= first) and (last is None or record.offset <= last)
                if wanted and (types is None or record.type in types):
                    yield record

    def _check_held(self, *offsets: int | None) -> None:
        wanted = [offset for offset in offsets if offset is not None]
        start, end = self.start_offset, self.end_offset
        if self._is_snapshot and wanted:
            start, end = 0, sum(batch.record_count for batch in self.batches())
        for offset in wanted:
            if not start <= offset < end:
                held = f"offsets {start} to {end - 1}" if end > start else "no offsets"
                raise OffsetError(f"Offset {offset} is not in {self.name}, which holds {held}.")

    def offset_at(self, at: int | datetime | None) -> int:
        """The offset that `at` means: itself, the last one (None), or the last whose batch time is at or before it.

        A datetime without a zone is UTC. Raises OffsetError for a time before the first batch, UsageError for what is
        neither an offset nor a datetime.
        """
        if at is None:
            return self.last_image_offset
        return offset_at(self.reader, at) if isinstance(at, datetime) else whole(at, "an offset or a datetime")

    def offset_since(self, time: datetime) -> int:
        """The offset after the last one whose batch time is before `time`: where what happened since then begins.

        A datetime without a zone is UTC. Raises OffsetError for a time after the last batch, and of a snapshot file.
        """
        self._refuse_snapshot()
        return offset_since(self.reader, instance(time, datetime, "a datetime"))

    @property
    def last_image_offset(self) -> int:
        """The newest offset that an image is asked for: the log's last, or that of the snapshot file."""
        return images_end(self.reader) - 1

    @property
    def last_time(self) -> datetime | None:
        """The time of the newest offset that an image is asked for; None where its batch has none."""
        return last_time(self.reader)

    def image(
        self, at: int | datetime | None = None, *, from_snapshot: bool | None = None, lenient: bool = False
    ) -> MetadataImage:
        """The image after replaying all offsets up to and including `at`, an offset or a time; None is the end.

        It starts from the nearest finished snapshot; `from_snapshot` False takes the log alone, True insists on a
        snapshot. Strict: a record that can't be replayed raises ReplayError or UnknownRecordError naming its offset;
        with `lenient` it is skipped, and `replay` tells which were. Raises OffsetError where there is no such image.
        """
        return self.replay(at, from_snapshot=from_snapshot, lenient=lenient).image

    def replay(
        self,
        at: int | datetime | None = None,
        *,
        from_snapshot: bool | None = None,
        lenient: bool = False,
        progress: Progress | None = None,
    ) -> Replay:
        """As `image`, with the snapshot that it started from and the records that were skipped.

        `progress` is called after each batch, or many of them.
        """
        if self._is_snapshot:
            return self._replay_snapshot(at, lenient=lenient, progress=progress)
        offset = self.offset_at(at)
        if offset < 0:  # the empty image is what changes start from, and nothing that anybody asks for
            choose_base(self.reader, offset)
        return image_at(self.reader, offset, from_snapshot=from_snapshot, lenient=lenient, progress=progress)

    def _replay_snapshot(self, at: int | datetime | None, *, lenient: bool, progress: Progress | None) -> Replay:
        snapshot = snapshot_named(self.reader)
        if isinstance(at, datetime):
            at = offset_at(self.reader, at)
        if at is not None and whole(at, "an offset or a datetime") != snapshot.end_offset - 1:
            raise OffsetError(
                f"{self.name} is a snapshot: it has one image, the one at offset {snapshot.end_offset - 1}."
            )
        return snapshot_image(snapshot, lenient=lenient, progress=progress)

    def local_changes(
        self,
        broker: int,
        from_offset: int,
        to_offset: int | None = None,
        *,
        from_snapshot: bool | None = None,
        lenient: bool = False,
        progress: Progress | None = None,
    ) -> LocalChanges:
        """What one metadata delta of the offsets (from_offset, to_offset] means to `broker`.

        `from_offset` -1 starts from the empty image; `to_offset` None is the end. `progress` as for `replay`. Raises as
        `image` does.
        """
        from kraftlake.replay.queries.local_changes import LocalChanges

        broker = whole(broker, "a broker's id", least=0)
        from_offset, to_offset = whole(from_offset), whole_or_none(to_offset)
        if to_offset is None:
            # What begins past the end is an offset that isn't there, not a range that runs backwards.
            to_offset = max(from_offset, self.last_image_offset)
        if from_offset > to_offset:
            raise UsageError(f"Local changes from offset {from_offset} to {to_offset} run backwards.")
        self._refuse_snapshot()
        loader = changes_between(
            self.reader, from_offset, to_offset, from_snapshot=from_snapshot, lenient=lenient, progress=progress
        )
        return LocalChanges.of(loader, broker, from_offset, to_offset)

    def changes(
        self, from_offset: int | None = None, to_offset: int | None = None, *, lenient: bool = False
    ) -> LogChanges:
        """Each change of the offsets [from_offset, to_offset] in turn: its delta, and the images before and after it.

        A change is that of a log batch, or of a whole metadata transaction at its end. Raises as `LogChanges` does.
        """
        from kraftlake.replay.queries.changes import LogChanges

        self._refuse_snapshot()
        return LogChanges(self.reader, whole_or_none(from_offset), whole_or_none(to_offset), lenient=lenient)

    def _refuse_snapshot(self) -> None:
        if self._is_snapshot:
            raise OffsetError(f"{self.name} is a snapshot: it holds one image and no changes; take the log instead.")

    def diff(self, before: int | datetime, after: int | datetime, *, lenient: bool = False) -> ImageDiff:
        """What differs between the images at two offsets or times; the offset -1 is the empty image."""
        from kraftlake.image import diff_images

        images = [MetadataImage.EMPTY if at == -1 else self.image(at, lenient=lenient) for at in (before, after)]
        return diff_images(*images)

    def verify(self, *, at_least: ChainLink | str | None = None, progress: Progress | None = None) -> VerifyReport:
        """Every check there is: see `verify`; `at_least` also as text, OFFSET or OFFSET:HASH."""
        from kraftlake.replay.verify.verification import verify

        if isinstance(at_least, str):
            from kraftlake.metadata_log import ChainLink

            at_least = ChainLink.parse(at_least)
        return verify(self, at_least=at_least, progress=progress)

    def export(
        self, path: str | os.PathLike[str], at: int | datetime | None = None, *, allow_loss: bool = False
    ) -> ExportReport:
        """Write the image at `at` as a KRaft snapshot file: see `kraftlake.replay.queries.export`."""
        from kraftlake.replay.queries.export import export

        return export(self, Path(path_text(path)), at, allow_loss=allow_loss)


def open_source(source: str | os.PathLike[str], *, cluster_id: str | None = None) -> Source:
    """Open whatever holds a metadata log; what it is, is told by its content.

    `cluster_id` says which cluster it is of where nothing beside it does. Raises NotASourceError for what is none,
    CorruptDataError for one that is broken, UsageError where `cluster_id` contradicts the source's own.
    """
    from kraftlake.replay.reading.open_reader import open_reader

    path = path_text(source)
    if cluster_id is not None:
        text(cluster_id, "the id of a cluster")
    reader, kind = open_reader(path)
    if cluster_id is not None and reader.cluster_id not in (None, cluster_id):
        raise UsageError(f"{path} is of cluster {reader.cluster_id}, not of cluster {cluster_id}.")
    return Source(reader, kind, path, reader.cluster_id or cluster_id)
