"""An opened source of a metadata log: its reader, its offsets and times, and the replay to an image."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Self

from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.fold import Replay, finish, load_snapshot, loader_at
from kraftlake.replay.reading.open_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.replay_base import broken_ranges, changes_begin, choose_base, images_end, snapshot_named
from kraftlake.replay.reading.times import last_time, offset_at, offset_since
from kraftlake.runtime.arguments import instance, path_text, text, whole_or_none
from kraftlake.runtime.errors import OffsetError, UsageError
from kraftlake.runtime.moments import LogTime, Moment, iso, moment_of, offset_or_time

if TYPE_CHECKING:
    from kraftlake.kafka_files.directory import BrokenRange
    from kraftlake.protocol.observer.quorum_observer import QuorumObserver
    from kraftlake.records.batch import RecordBatch
    from kraftlake.replay.reading.progress import Progress


class LogSource:
    """A lake, a Kafka metadata directory, a segment, a snapshot file or an archive.

    `kraftlake.Source` answers questions about one. Offsets are Kafka's and inclusive.
    """

    def __init__(self, reader: LogReader, kind: SourceKind, path: str, cluster_id: str | None) -> None:
        self.reader = reader
        self.kind = kind
        self.path = path
        self.cluster_id = cluster_id
        self.observer: Callable[[], QuorumObserver] | None = None
        """A function that observes the live quorum whose log is copied here; None for files and lakes."""

    def __repr__(self) -> str:
        kind, offsets = self.kind.name.lower(), f"{self.start_offset} to {self.end_offset - 1}"
        return f"<{type(self).__name__} {kind} {self.path!r} offsets {offsets}>"

    @classmethod
    def open(
        cls,
        source: str | os.PathLike[str],
        *,
        cluster_id: str | None = None,
        node: int | None = None,
        command_config: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Self:
        """Open a path, a URI or the addresses of a quorum; the content determines the kind. See `kraftlake.open`."""
        from kraftlake.protocol.address import are_addresses
        from kraftlake.replay.reading.open_reader import open_reader

        path = path_text(source)
        if cluster_id is not None:
            text(cluster_id, "the id of a cluster")
        node = whole_or_none(node, "a node's id", least=0)
        reader: LogReader
        if are_addresses(path):
            from kraftlake.replay.live.open_quorum import observer_of, open_quorum

            if node is not None:
                raise UsageError(f"{path} is a quorum, which has one log: no node's can be chosen.")
            reader = open_quorum(
                path, cluster_id=cluster_id, command_config=command_config, progress=progress, warn=warn
            )
            opened = cls(reader, reader.kind, reader.path, reader.cluster_id)
            opened.observer = partial(observer_of, path, cluster_id=reader.cluster_id, command_config=command_config)
            return opened
        if command_config is not None:
            raise UsageError(f"{path} is read from files: a command config belongs to HOST:PORT of a quorum.")
        reader, kind = open_reader(path, node)
        if cluster_id is not None and reader.cluster_id not in (None, cluster_id):
            raise UsageError(f"{path} is of cluster {reader.cluster_id}, not of cluster {cluster_id}.")
        return cls(reader, kind, path, reader.cluster_id or cluster_id)

    @property
    def name(self) -> str:
        """The source's name in messages."""
        return self.reader.name

    @property
    def start_offset(self) -> int:
        """The first offset of the log."""
        return self.reader.start_offset

    @property
    def end_offset(self) -> int:
        """The first offset after the last whole batch of the log; of a snapshot file: after the offsets it contains."""
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
        """The gaps between segments and the overlaps of segments; an image after one needs a snapshot after it."""
        return broken_ranges(self.reader, self.start_offset, self.end_offset)

    @property
    def has_offsets(self) -> bool:
        """Whether offsets are known; False for a snapshot file whose name is not END-EPOCH.checkpoint."""
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

    def offset_at(self, at: Moment | None = None, *, at_time: Moment | None = None) -> int:
        """The offset of a moment: `at` itself if it is an int, the last offset whose batch time is at or before a time.

        None is the last offset. A time is text or a datetime, in UTC unless it names a zone, or counts from the end of
        the log (`now-15m`, `07:46`: see `kraftlake.runtime.moments`); `at_time` is a time, too, and an int there is
        milliseconds since 1970. Raises OffsetError for a time before the first batch, UsageError for a value that is
        neither an offset nor a time.
        """
        moment = self._fixed(moment_of(at, at_time))
        if moment is None:
            return self.last_image_offset
        return offset_at(self.reader, moment) if isinstance(moment, datetime) else moment

    def offset_since(self, time: str | datetime | LogTime) -> int:
        """The offset after the last one whose batch time is before `time`: the first record written since then.

        `time` is as in `offset_at`. Raises OffsetError for a time after the last batch, and for a snapshot file,
        UsageError for a value that is not a time.
        """
        self._refuse_snapshot()
        return offset_since(self.reader, instance(self._fixed(offset_or_time(time)), datetime, "a time"))

    def time_of(self, time: LogTime) -> datetime:
        """The time that is counted from the end of this log, in UTC. Raises OffsetError where the end has no time."""
        end = self.last_time
        if end is None:
            raise OffsetError(f"The last batch of {self.name} has no time, so {time.text} can't be counted from it.")
        return time.before(end)

    def _fixed(self, moment: int | datetime | LogTime | None) -> int | datetime | None:
        return self.time_of(moment) if isinstance(moment, LogTime) else moment

    def offset_range(
        self, from_offset: Moment | None = None, to_offset: Moment | None = None
    ) -> tuple[int | None, int | None]:
        """The offsets of a range of moments, both ends included; None is the source's own start or end.

        A time means the records written since (`from_offset`), or up to and at it (`to_offset`). Raises UsageError
        where the range runs backwards, OffsetError where no record was written between two times.
        """
        first, last = (self._fixed(moment_of(moment, None)) for moment in (from_offset, to_offset))
        begin = self.offset_since(first) if isinstance(first, datetime) else first
        end = self.offset_at(last) if isinstance(last, datetime) else last
        if isinstance(first, datetime) and isinstance(last, datetime):
            if first > last:
                raise UsageError(f"The range from {iso(first)} to {iso(last)} runs backwards.")
            if begin is not None and end is not None and begin > end:
                raise OffsetError(self._nothing_between(begin, end))
        if begin is not None and end is not None and begin > end:
            raise UsageError(f"The range from offset {begin} to {end} runs backwards.")
        return begin, end

    def _nothing_between(self, begin: int, end: int) -> str:
        """The reason why no record lies between two times, which are after offset `end` and before `begin`."""
        if end < self.start_offset <= begin:
            return (
                f"The log of {self.name} does not reach back to these times: it begins with offset "
                f"{self.start_offset}, and of what was before there are snapshots only."
            )
        after = f", {begin} of after them" if begin < self.end_offset else ""
        return f"Nothing was written to {self.name} between these times: offset {end} is of before them{after}."

    @property
    def changes_begin(self) -> int:
        """The first offset whose changes are known; a trimmed log may have records before it, and no image for them."""
        return changes_begin(self.reader)

    @property
    def last_image_offset(self) -> int:
        """The newest offset that has an image: the log's last, or that of a snapshot."""
        return images_end(self.reader) - 1

    @property
    def last_time(self) -> datetime | None:
        """The time of the newest offset that has an image; None where its batch has none."""
        return last_time(self.reader)

    def replay(
        self,
        at: Moment | None = None,
        *,
        at_time: Moment | None = None,
        from_snapshot: bool | None = None,
        lenient: bool = False,
        progress: Progress | None = None,
    ) -> Replay:
        """The image at a moment (see `offset_at`), the snapshot that it starts from, and the records skipped.

        The replay starts from the nearest finished snapshot; `from_snapshot` False reads the log alone, True requires a
        snapshot. By default a record that can't be replayed raises ReplayError or UnknownRecordError naming its offset;
        with `lenient` it is skipped. `progress` is called after each batch, or many of them. Raises OffsetError where
        there is no such image.
        """
        if self._is_snapshot:
            loader = self._load_snapshot(self._fixed(moment_of(at, at_time)), lenient=lenient, progress=progress)
        else:
            offset = self.offset_at(at, at_time=at_time)
            if offset < 0:  # changes start from the empty image; as an answer it is refused
                choose_base(self.reader, offset)
            loader = loader_at(self.reader, offset, from_snapshot=from_snapshot, lenient=lenient, progress=progress)
        loader.cluster_id = self.cluster_id
        return finish(loader)

    def _load_snapshot(
        self, at: int | datetime | None, *, lenient: bool, progress: Progress | None
    ) -> MetadataBatchLoader:
        snapshot = snapshot_named(self.reader)
        if isinstance(at, datetime):
            at = offset_at(self.reader, at)
        if at is not None and at != snapshot.end_offset - 1:
            raise OffsetError(
                f"{self.name} is a snapshot: it has one image, the one at offset {snapshot.end_offset - 1}."
            )
        loader = MetadataBatchLoader(lenient=lenient)
        load_snapshot(loader, snapshot, progress=progress)
        return loader

    def _refuse_snapshot(self) -> None:
        if self._is_snapshot:
            raise OffsetError(f"{self.name} is a snapshot: it holds one image and no changes; take the log instead.")
