"""A metadata directory: the segments of a log in offset order, and its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from kraftlake.kafka_files.faults import BrokenFileError, TornTail, unreadable
from kraftlake.kafka_files.file_names import (
    is_log_file,
    is_packed_log_file,
    segment_base_offset,
    snapshot_id,
    unpacked_name,
)
from kraftlake.kafka_files.node.meta_properties import MetaProperties, find_properties
from kraftlake.kafka_files.node.quorum_state import MAX_SIZE, QUORUM_STATE
from kraftlake.kafka_files.segments.batch_walk import Whole, walk
from kraftlake.kafka_files.segments.salvage import Lost, salvage
from kraftlake.kafka_files.segments.segment import ReaderPosition, Segment, find_log_end
from kraftlake.kafka_files.snapshots.snapshot import Snapshot, read_snapshot
from kraftlake.kafka_files.sniffing.nested import metadata_directories
from kraftlake.kafka_files.sniffing.sniffing import holds_metadata
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile, StoredFile
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import CorruptDataError, NotASourceError
from kraftlake.runtime.words import shown

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues


_NAMED = 8
"""The maximum number of nodes in a message."""


@attrs.frozen
class BrokenRange:
    """Offsets `first` to `last` that no segment holds, or that two hold.

    `fault` is the error that reading them raises.
    """

    first: int
    last: int
    fault: BrokenFileError


@attrs.frozen(kw_only=True)
class MetadataDirectory:
    """A log in Kafka's files: in a directory, in one file, or in an archive.

    The files are as at the time of opening: later appends of a live node are not seen. `start_offset` is the first
    offset by the segments' names, `end_offset` the first one after the last whole batch; without a segment, both are
    the newest finished snapshot's end. `snapshots` are all snapshots by end offset, including unfinished ones. A single
    snapshot file (see `kind`) is a log without batches and with one snapshot.
    """

    kind: SourceKind
    path: str
    name: str
    cluster_id: str | None
    start_offset: int
    end_offset: int
    snapshots: tuple[Snapshot, ...]
    torn: TornTail | None
    segments: tuple[Segment, ...] = attrs.field(repr=False)
    _ends: dict[int, int] = attrs.field(factory=dict, init=False, repr=False, eq=False)

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        """Yield the whole batches of the log that hold any offset in [from_offset, to_offset], in offset order.

        Only the segments of the range are read, and the end of the previous one. Raises BrokenFileError (a
        CorruptDataError) if a segment does not start at the end of the previous one, even if the range lies in such a
        gap, and for damage that is followed by whole batches.
        """
        first = self._segment_of(from_offset)
        segments = self.segments[first:]
        if not segments or (to_offset is not None and to_offset < from_offset):
            return
        if self._end_before(first) > max(from_offset, segments[0].base_offset):
            check_follows(self._end_before(first), segments[0])
        at = ReaderPosition(segments[0].base_offset)
        for segment in segments:
            if to_offset is not None and at.offset > to_offset:
                return
            check_follows(at.offset, segment)
            yield from segment.batches(at, from_offset, to_offset)

    def readable_batches(self, from_offset: int, to_offset: int, lost: Lost) -> Iterator[RecordBatch]:
        """The same as `batches`, but skips unreadable data and reports it to `lost`: see `salvage`."""
        return salvage(self.segments[self._segment_of(from_offset) :], from_offset, to_offset, lost)

    def bulk_batches(self, from_offset: int, to_offset: int) -> Iterator[BatchValues | RecordBatch]:
        """The same as `batches`, in bulk; may include more batches at both ends of the range.

        Stops silently before the first invalid byte: `batches` reports the reason.
        """
        first = self._segment_of(from_offset)
        if not self.segments or self._end_before(first) > max(from_offset, self.segments[first].base_offset):
            return
        at = ReaderPosition(self.segments[first].base_offset)
        for segment in self.segments[first:]:
            if at.offset != segment.base_offset:
                return
            for chunk in segment.bulk_batches(at, from_offset):
                if chunk.base_offset > to_offset:
                    return
                if chunk.last_offset >= from_offset:
                    yield chunk

    @property
    def may_grow(self) -> bool:
        """Whether a node may be writing to the log: a directory without compressed segments."""
        return self.kind is SourceKind.DIRECTORY and all(isinstance(one.file, DiskFile) for one in self.segments)

    @cached_property
    def broken_ranges(self) -> tuple[BrokenRange, ...]:
        """The gaps between segments and the overlaps of segments, in offset order.

        Reads only the end of each segment: damage inside a segment is found when the segment is read.
        """
        found = []
        for index, segment in enumerate(self.segments):
            end, start = self._end_before(index), segment.base_offset
            if end != start and index:
                fault = broken_follow(end, segment)
                found.append(BrokenRange(min(end, start), max(end, start) - 1, fault))
        return tuple(found)

    def _segment_of(self, offset: int) -> int:
        """The index of the segment that contains an offset, if any; 0 for an offset before all segments."""
        return max((i for i, s in enumerate(self.segments) if s.base_offset <= offset), default=0)

    def _end_before(self, index: int) -> int:
        """The end offset of the segment before the one at `index`; the start offset for the first one."""
        if index == 0:
            return self.start_offset
        if index not in self._ends:
            self._ends[index] = self.segments[index - 1].end_offset(expected=self.segments[index].base_offset)
        return self._ends[index]


@attrs.frozen(kw_only=True)
class NodeFiles:
    """The metadata log of one node.

    `folder` is where it lies: a path, or a folder of the `archive` of that path. `properties` are those of the
    `meta.properties` near it, `quorum_state` is the content of its file `quorum-state`, None where there is none.
    `open` opens the log, and raises CorruptDataError for a broken one.
    """

    folder: str
    archive: str | None = None
    properties: MetaProperties = MetaProperties()
    quorum_state: bytes | None = None
    open: Callable[[], MetadataDirectory] = attrs.field(repr=False, eq=False)

    def __str__(self) -> str:
        id_ = self.properties.node_id
        return f"node {'?' if id_ is None else id_} in {shown(self.folder)}"


def node_named(nodes: Sequence[NodeFiles], node: int | None, where: str) -> NodeFiles:
    """The files of the node with an id among those found in `where`; None stands for the only one.

    Raises NotASourceError that names what was found, where that chooses none or more than one.
    """
    found = [one for one in nodes if node is None or one.properties.node_id == node]
    if len(found) == 1:
        return found[0]
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    named = f"{', '.join(map(str, nodes[:_NAMED]))}{more}"
    if not found:
        raise NotASourceError(f"{where} holds no metadata log of node {node}: there is {named}")
    ids = [one.properties.node_id for one in found]
    way_out = "choose one with --node ID" if len({*ids} - {None}) == len(ids) else "name one of these"
    count = "" if node is None else f" of node {node}"
    raise NotASourceError(f"{where} holds {len(found)} metadata directories{count} ({named}): {way_out}")


def broken_follow(offset: int, segment: Segment) -> BrokenFileError:
    """Return the error for a `segment` that does not start at `offset`, the end of the previous one."""
    start = segment.base_offset
    if start > offset:
        message = f"offsets {offset} to {start - 1} are missing before this segment"
        return BrokenFileError(segment.file.name, 0, offset, message)
    message = f"this segment starts at offset {start}, but the one before it goes up to {offset - 1}"
    return BrokenFileError(segment.file.name, 0, start, message)


def check_follows(offset: int, segment: Segment) -> None:
    """Raise BrokenFileError if `segment` does not start at `offset`, the end of the previous one."""
    if segment.base_offset != offset:
        raise broken_follow(offset, segment)


def open_directory(path: str | Path, *, node: int | None = None) -> MetadataDirectory:
    """Open a folder of segments and snapshots, or one that contains a metadata directory at any depth.

    If several exist, `node` chooses one. Reads file names, the last segment, and the heads and ends of snapshots.
    Raises NotASourceError if none exists, or if several exist and `node` does not choose one (the error names them).
    """
    return node_named(nodes_in_directory(path), node, str(path)).open()


def nodes_in_directory(path: str | Path) -> tuple[NodeFiles, ...]:
    """Return the metadata directories in a folder, at any depth, or the folder itself. Raises as `open_directory`."""
    folder = Path(path)
    try:
        folders = [folder] if _log_files(folder) else metadata_directories(folder, holds_metadata)
        if not folders:
            raise NotASourceError(
                f"{folder} holds no segments (*.log) and no snapshots (*.checkpoint) of a metadata log"
            )
        return tuple(map(_node, folders))
    except OSError as error:
        raise unreadable(str(error.filename or folder), error) from None


def _node(folder: Path) -> NodeFiles:
    state = folder / QUORUM_STATE
    return NodeFiles(
        folder=str(folder),
        properties=find_properties(folder),
        quorum_state=state.read_bytes()[:MAX_SIZE] if state.is_file() else None,
        open=partial(_open_folder, folder),
    )


def _log_files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if is_log_file(entry.name) and entry.is_file())


def _open_folder(folder: Path) -> MetadataDirectory:
    try:
        names = _log_files(folder)
    except OSError as error:
        raise unreadable(str(folder), error) from None
    if not names:
        raise NotASourceError(f"{folder} holds no segments (*.log) and no snapshots (*.checkpoint) of a metadata log")
    packed = list(filter(is_packed_log_file, names))
    files: list[StoredFile] = [DiskFile.at(folder / name) for name in names if name not in packed]
    if packed:
        from kraftlake.kafka_files.archives.members import unpacked_files  # costs what archives cost

        for name in packed:
            if unpacked_name(name) in names:
                raise CorruptDataError(f"{folder} holds both {unpacked_name(name)} and {name}: move one of them away")
        files += unpacked_files(folder, packed)
    return log_of(
        files,
        kind=SourceKind.DIRECTORY,
        path=str(folder),
        name=folder.absolute().name,
        cluster_id=find_properties(folder).cluster_id,
    )


def log_of(
    files: Sequence[StoredFile], *, kind: SourceKind, path: str, name: str, cluster_id: str | None
) -> MetadataDirectory:
    """Build one log from the segments and snapshots among `files`, distinguished by their names.

    A file that is a SOURCE on its own is classified by its `kind`, whatever its name.
    """
    match kind:
        case SourceKind.SEGMENT:
            based, snapshots = [(first_base_offset(file), file) for file in files], []
        case SourceKind.SNAPSHOT:
            based, snapshots = [], [read_snapshot(file) for file in files]
        case _:
            based = [(base, file) for file in files if (base := segment_base_offset(file.name)) is not None]
            snapshots = [read_snapshot(file) for file in files if snapshot_id(file.name) is not None]
    based.sort(key=lambda pair: pair[0])
    start_offset = end_offset = max((s.end_offset for s in snapshots if s.finished), default=0)
    torn: TornTail | None = None
    segments = [Segment(file=file, base_offset=base, end_position=file.size) for base, file in based]
    if segments:
        last = segments[-1]
        end = find_log_end(last.file, last.base_offset)
        segments[-1] = attrs.evolve(last, end_position=end.position)
        start_offset, end_offset, torn = segments[0].base_offset, end.offset, end.torn
    return MetadataDirectory(
        kind=kind,
        path=path,
        name=name,
        cluster_id=cluster_id,
        start_offset=start_offset,
        end_offset=end_offset,
        snapshots=tuple(sorted(snapshots, key=lambda s: (s.end_offset, s.epoch, s.name))),
        torn=torn,
        segments=tuple(segments),
    )


def first_base_offset(file: StoredFile) -> int:
    """Return the base offset of a segment's first batch, whatever its name. Raises CorruptDataError without a batch."""
    step = next(walk(file, headers_only=True), None)
    if not isinstance(step, Whole):
        raise CorruptDataError(f"{file.name} does not start with a whole record batch")
    return step.header.base_offset
