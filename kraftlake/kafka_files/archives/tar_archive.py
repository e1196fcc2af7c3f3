"""Tar archives, plain and compressed, and compressed single files, read front to back.

The standard library parses the headers; its reader is not used, because it trusts the lengths of long names and
extended headers. Source: POSIX pax interchange format and GNU tar's headers.
"""

from __future__ import annotations

import tarfile
from tarfile import TarInfo
from typing import BinaryIO

import attrs

from kraftlake.kafka_files.archives.compression import CODECS, exactly
from kraftlake.kafka_files.archives.members import Members
from kraftlake.kafka_files.file_names import is_log_file, is_packed_log_file
from kraftlake.kafka_files.sniffing.file_content import TAR_BLOCK, is_tar_header
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.runtime.errors import CorruptDataError

_SKIP_CHUNK = 1024 * 1024
_MAX_EXTENDED_HEADER = 1024 * 1024
_MAX_SPARSE_BLOCKS = 10_000
_LINKS_AND_DEVICES = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
_EXTENDED_HEADERS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE)


@attrs.define
class _Extension:
    """The extended headers before a member."""

    name: str | None = None
    size: int | None = None
    is_sparse: bool = False


class _Input:
    """The bytes of the tar, decompressed by `codec` if compressed, with the position in them."""

    def __init__(self, stream: BinaryIO, members: Members, *, codec: str | None) -> None:
        self._file = stream
        self._stream = stream if codec is None else CODECS[codec](stream)
        self._members = members
        self.compressed = codec is not None
        self.position = 0

    def read(self, length: int) -> bytes:
        data = self._stream.read(length)
        self.position += len(data)
        return data

    def block(self) -> bytes:
        """Read the next 512 bytes; fewer at the end."""
        block = self.read(TAR_BLOCK)
        while len(block) < TAR_BLOCK and (more := self.read(TAR_BLOCK - len(block))):
            block += more
        return block

    def skip_to(self, position: int) -> None:
        cut = CorruptDataError(f"the archive {self._members.path} ends inside one of its members")
        if not self.compressed:
            if position > self._members.archive_size:
                raise cut
            self._file.seek(position)
            self.position = position
        while self.position < position:
            if not self.read(min(_SKIP_CHUNK, position - self.position)):
                raise cut


def read_tar(stream: BinaryIO, members: Members, *, codec: str | None = None) -> None:
    """Collect the log files of a tar, optionally compressed by a `codec` of CODECS, into `members`.

    Compressed data that is not a tar is a single file, which `members` then hold `alone`. Raises CorruptDataError for a
    broken or unsafe archive.
    """
    tar = _Input(stream, members, codec=codec)
    extension = _Extension()
    block = tar.block()
    if tar.compressed and not is_tar_header(block):
        members.read_alone(block, tar.read)
        return
    while block:
        if not block.strip(b"\0"):
            break
        if len(block) < TAR_BLOCK or not is_tar_header(block):
            raise CorruptDataError(
                f"the archive {members.path} has a broken tar header at byte {tar.position - len(block)}"
            )
        header = _parse(block, members.path)
        if header.type in _EXTENDED_HEADERS:
            members.admit("", header.size)
            _read_extension(tar, header, extension, members)
        else:
            if header.type == tarfile.GNUTYPE_SPARSE and block[482]:
                _skip_sparse_map(tar, members)
            _take(tar, header, extension, members)
            extension = _Extension()
        block = tar.block()


def _take(tar: _Input, header: TarInfo, extension: _Extension, members: Members) -> None:
    """Read or skip one member; leaves the tar positioned after it."""
    name = header.name if extension.name is None else extension.name
    size = header.size if extension.size is None else extension.size
    if header.type in _LINKS_AND_DEVICES:
        raise members.link(name)
    folder, file_name = members.admit(name, size)
    if header.isdir():
        size = 0
    end = tar.position + -(-size // TAR_BLOCK) * TAR_BLOCK
    if header.isfile() and members.is_wanted(file_name):
        if header.type == tarfile.GNUTYPE_SPARSE or extension.is_sparse:
            raise members.refusal(f"its member {file_name} is stored as a sparse file: pack it without --sparse")
        _read_member(tar, folder, file_name, size, members)
    tar.skip_to(end)


def _skip_sparse_map(tar: _Input, members: Members) -> None:
    """Skip the blocks in which GNU tar continues the map of a sparse file."""
    for _ in range(_MAX_SPARSE_BLOCKS):
        block = tar.block()
        if len(block) < TAR_BLOCK or not block[504]:
            return
    raise members.refusal(f"a sparse file in it has a map of more than {_MAX_SPARSE_BLOCKS:,} blocks")


def _read_member(tar: _Input, folder: str, name: str, size: int, members: Members) -> None:
    if tar.compressed or not is_log_file(name) or is_packed_log_file(name):
        members.read(folder, name, size, tar.read)
        return
    if tar.position + size > members.archive_size:
        raise CorruptDataError(f"the archive {members.path} ends inside its member {name!r}")
    members.add(folder, DiskFile(path=members.path, name=name, size=size, start=tar.position))


def _read_extension(tar: _Input, header: TarInfo, extension: _Extension, members: Members) -> None:
    if header.size > _MAX_EXTENDED_HEADER:
        raise members.refusal(f"an extended header in it takes {header.size:,} bytes")
    end = tar.position + -(-header.size // TAR_BLOCK) * TAR_BLOCK
    data = exactly(tar.read, header.size)
    tar.skip_to(end)
    if header.type == tarfile.GNUTYPE_LONGNAME:
        extension.name = _text(data.split(b"\0", 1)[0])
    elif header.type == tarfile.XHDTYPE:
        _read_pax(data, extension, members.path)


def _read_pax(data: bytes, extension: _Extension, path: str) -> None:
    """Parse records of the form `length key=value\\n`, where the length counts the whole record."""
    broken = CorruptDataError(f"the archive {path} has a broken extended header")
    position = 0
    while position < len(data) and data[position]:
        space = data.find(b" ", position, position + 12)
        if space < 0 or not data[position:space].isdigit():
            raise broken
        length = int(data[position:space])
        key, equals, value = data[space + 1 : position + length].partition(b"=")
        if not equals or length <= space - position or position + length > len(data):
            raise broken
        if key == b"path":
            extension.name = _text(value.removesuffix(b"\n"))
        elif key == b"size":
            digits = value.strip()
            if not digits.isdigit() or len(digits) > 18:
                raise broken
            extension.size = int(digits)
        elif key.startswith(b"GNU.sparse."):
            extension.is_sparse = True
        position += length


def _parse(block: bytes, path: str) -> TarInfo:
    try:
        header = TarInfo.frombuf(block, "utf-8", "backslashreplace")
    except tarfile.HeaderError:
        raise CorruptDataError(f"the archive {path} has a member whose size is no number") from None
    if not 0 <= header.size < 1 << 62:
        raise CorruptDataError(f"the archive {path} has a member of an impossible size")
    return header


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
