"""Zip archives, read by the standard library with bounded reads."""

from __future__ import annotations

import stat
import zipfile
from typing import BinaryIO

from kraftlake.kafka_files.archives.members import Members
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import shown

_MAX_READ = 16 * 1024 * 1024
_ENCRYPTED = 0x1


class _SmallReads:
    """A file with bounded reads: the standard library reads a central directory of any size at once."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self._stream = stream
        self._path = path
        self.seek = stream.seek
        self.tell = stream.tell

    def read(self, length: int = -1) -> bytes:
        data = self._stream.read(length if 0 <= length <= _MAX_READ else _MAX_READ + 1)
        if len(data) > _MAX_READ:
            raise CorruptDataError(
                f"the archive {self._path} is refused: its directory takes more than {_MAX_READ:,} bytes"
            )
        return data

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()


def read_zip(stream: BinaryIO, members: Members) -> None:
    """Collect the log files of a zip into `members`. Raises CorruptDataError for unsafe members."""
    with zipfile.ZipFile(_SmallReads(stream, members.path)) as archive:
        wanted = []
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise members.link(info.orig_filename)
            folder, name = members.admit(info.orig_filename, info.file_size)
            if not info.filename.endswith("/") and members.is_wanted(name):  # is_dir() fails without a name
                wanted.append((folder, name, info))
        for folder, name, info in wanted:
            if info.flag_bits & _ENCRYPTED:
                raise members.refusal(f"its member {shown(info.filename)!r} is encrypted")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise members.refusal(f"its member {shown(info.filename)!r} is packed by a method other than deflate")
            with archive.open(info) as member:
                members.read(folder, name, info.file_size, member.read)
