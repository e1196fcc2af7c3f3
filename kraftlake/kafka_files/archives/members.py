"""The members of an archive: limits, checked names, and the files that make up a log."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

import attrs

from kraftlake.kafka_files.archives.compression import codec_faults, exactly, unpacked
from kraftlake.kafka_files.file_names import (
    ARCHIVE_SUFFIXES,
    META_PROPERTIES,
    is_log_file,
    is_packed_log_file,
    unpacked_name,
)
from kraftlake.kafka_files.node.meta_properties import MAX_SIZE, MetaProperties, read_properties
from kraftlake.kafka_files.node.quorum_state import QUORUM_STATE
from kraftlake.kafka_files.stored_file import BLOCK_SIZE, BlockFile, DiskFile, StoredFile
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import shown


@attrs.frozen(kw_only=True)
class ArchiveLimits:
    """The limits above which an archive is refused. Sizes in bytes."""

    members: int = 100_000
    unpacked: int = 64 * 1024**3
    """The maximum unpacked size of all members together."""
    ratio: int = 200
    """The maximum of `unpacked` over the archive's own size; counts from `ratio_from` unpacked bytes on."""
    ratio_from: int = 256 * 1024**2
    held: int = 512 * 1024**2
    """The maximum memory for the log files of a compressed archive, which are held as compressed blocks."""

    def largest_unpacked(self, archive_size: int) -> int:
        """The maximum unpacked size for an archive of this size."""
        return min(self.unpacked, max(self.ratio_from, self.ratio * archive_size))


DEFAULT_LIMITS = ArchiveLimits()


def unpacked_files(folder: Path, names: Sequence[str], limits: ArchiveLimits = DEFAULT_LIMITS) -> list[StoredFile]:
    """Return the segments and snapshots of a folder that are compressed on their own, held in memory like an archive's.

    Raises CorruptDataError for a file that is broken or exceeds `limits`, NotASourceError for an unreadable one.
    """
    files = [DiskFile.at(folder / name) for name in names]
    members = Members(str(folder), limits, sum(file.size for file in files), what="the folder")
    for file in files:
        with codec_faults(f"the file {file.path}", file.path), Path(file.path).open("rb") as stream:
            members.read_packed("", file.name, stream.read)
    return [*members.folders.get("", {}).values()]


@attrs.define
class Members:
    """The files of nodes found in an archive so far, by their folder in the archive.

    The members are log files, the properties in `meta.properties`, the content of `quorum-state`. `what` describes the
    source in messages; `alone` is set if the source is not an archive but one compressed file.
    """

    path: str
    limits: ArchiveLimits
    archive_size: int
    what: str = "the archive"
    alone: bool = False
    archives: list[str] = attrs.field(factory=list)
    """The names of nested archives, which are not read."""
    folders: dict[str, dict[str, StoredFile]] = attrs.field(factory=dict)
    properties: dict[str, MetaProperties] = attrs.field(factory=dict)
    quorum_states: dict[str, bytes] = attrs.field(factory=dict)
    _count: int = 0
    _unpacked: int = 0
    _held: int = 0

    def admit(self, name: str, size: int) -> tuple[str, str]:
        """Return the folder and the file name of a member. Raises CorruptDataError for an unsafe name or size."""
        self._count += 1
        if self._count > self.limits.members:
            raise self.refusal(f"it has more than {self.limits.members:,} members")
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or "\0" in name or (len(name) > 1 and name[1] == ":"):
            raise self.refusal(f"its member {shown(name)!r} has an absolute or foreign path")
        if ".." in parts:
            raise self.refusal(f"its member {shown(name)!r} points outside of it")
        self._unpack(size)
        *folder, file_name = [part for part in parts if part not in ("", ".")] or [""]
        if file_name.endswith(ARCHIVE_SUFFIXES):
            self.archives.append(name)
        return "/".join(folder), file_name

    def _unpack(self, size: int) -> None:
        self._unpacked += size
        most = self.limits.largest_unpacked(self.archive_size)
        if self._unpacked > most:
            raise self.refusal(
                f"its {self.archive_size:,} bytes unpack to more than {most:,}, as a zip bomb's do: "
                "pack the directory __cluster_metadata-0 alone"
            )

    def refusal(self, why: str) -> CorruptDataError:
        """The error that refuses the archive."""
        return CorruptDataError(f"{self.what} {self.path} is refused: {why}")

    def left(self) -> ArchiveLimits:
        """The part of the limits that remains for other archives held at the same time."""
        limits = self.limits
        return attrs.evolve(
            limits,
            members=limits.members - self._count,
            unpacked=limits.unpacked - self._unpacked,
            held=limits.held - self._held,
        )

    def link(self, name: str) -> CorruptDataError:
        """Return the error for a member that is a link or a special file."""
        return self.refusal(f"its member {shown(name)!r} is a link or a special file")

    def is_wanted(self, file_name: str) -> bool:
        """Whether a member of this name is to be read."""
        return is_log_file(file_name) or file_name in (META_PROPERTIES, QUORUM_STATE)

    def add(self, folder: str, file: StoredFile) -> None:
        """Add a log file."""
        files = self.folders.setdefault(folder, {})
        if file.name in files:
            raise self.refusal(f"it has two members {shown(f'{folder}/{file.name}')!r}")
        files[file.name] = file

    def read(self, folder: str, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Add a wanted member of `size` bytes; `read(n)` returns its next `n` bytes, fewer only at its end."""
        if name == META_PROPERTIES:
            self.properties[folder] = read_properties(exactly(read, min(size, MAX_SIZE)))
            return
        if name == QUORUM_STATE:
            self.quorum_states[folder] = exactly(read, min(size, MAX_SIZE))
            return
        if is_packed_log_file(name):
            self.read_packed(folder, name, _first(read, size))
            return
        self._hold(folder, name, size, read)

    def _hold(self, folder: str, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Add a file of a known size."""
        blocks: list[bytes] = []
        left = size
        while left > 0:
            block = exactly(read, min(left, BLOCK_SIZE))
            if len(block) < min(left, BLOCK_SIZE):
                raise CorruptDataError(f"the archive {self.path} ends inside its member {shown(name)!r}")
            left -= len(block)
            blocks.append(self._held_block(block))
        self.add(folder, BlockFile(name=name, size=size, blocks=tuple(blocks)))

    def read_alone(self, head: bytes, read: Callable[[int], bytes]) -> None:
        """Add the single compressed file that the source is; it begins with `head`, and `read` returns the rest."""
        self.alone = True
        self._read_on("", PurePath(self.path).stem, head, read)

    def read_packed(self, folder: str, name: str, read: Callable[[int], bytes]) -> None:
        """Add a segment or a snapshot that is compressed on its own, decompressed and without the codec's suffix."""
        what = f"the file {shown(name)} of {self.what} {self.path}"
        with codec_faults(what, self.path):
            self._read_on(folder, unpacked_name(name), b"", unpacked(read, what).read)

    def _read_on(self, folder: str, name: str, head: bytes, read: Callable[[int], bytes]) -> None:
        """Add a file whose size becomes known only at its end."""
        blocks: list[bytes] = []
        size, block = 0, head + exactly(read, BLOCK_SIZE - len(head))
        while block:
            self._unpack(len(block))
            size += len(block)
            blocks.append(self._held_block(block))
            block = exactly(read, BLOCK_SIZE) if len(block) == BLOCK_SIZE else b""
        self.add(folder, BlockFile(name=name, size=size, blocks=tuple(blocks)))

    def _held_block(self, block: bytes) -> bytes:
        packed = zlib.compress(block, 1)
        self._held += len(packed)
        if self._held > self.limits.held:
            raise self.refusal("its log is too large to be read compressed: unpack it and name the directory")
        return packed


@attrs.define
class TextMembers(Members):
    """The text files found in an archive so far, of names that `wanted` accepts without a codec's suffix."""

    wanted: Callable[[str], bool] = bool

    def is_wanted(self, file_name: str) -> bool:
        """Whether a member of this name is to be read."""
        return self.wanted(unpacked_name(file_name))

    def read(self, folder: str, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Add a wanted member, decompressed where its name says that it is compressed."""
        if unpacked_name(name) == name:
            self._hold(folder, name, size, read)
        else:
            self.read_packed(folder, name, _first(read, size))


def _first(read: Callable[[int], bytes], size: int) -> Callable[[int], bytes]:
    """Read the first `size` bytes from `read`; raises the codec's CorruptDataError if fewer exist."""
    left = size

    def within(length: int) -> bytes:
        nonlocal left
        data = read(min(length, left))
        left -= len(data)
        return data

    return within
