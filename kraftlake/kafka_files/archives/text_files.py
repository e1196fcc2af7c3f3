"""Text files, such as logs of programs: plain, compressed on their own, or inside archives of several nodes."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Final

import attrs

from kraftlake.kafka_files.archives.compression import codec_faults, codec_of
from kraftlake.kafka_files.archives.members import DEFAULT_LIMITS, ArchiveLimits, TextMembers
from kraftlake.kafka_files.archives.tar_archive import read_tar
from kraftlake.kafka_files.archives.zip_archive import read_zip
from kraftlake.kafka_files.sniffing.file_content import TAR_BLOCK, is_tar_header
from kraftlake.kafka_files.stored_file import DiskFile, StoredFile
from kraftlake.runtime.errors import NotASourceError

_ZIP: Final = b"PK\x03\x04"


@attrs.frozen
class TextFile:
    """A text file and its name in messages: its path, for a member of an archive behind the archive's."""

    name: str
    file: StoredFile


def text_files(path: str, wanted: Callable[[str], bool], limits: ArchiveLimits = DEFAULT_LIMITS) -> list[TextFile]:
    """The file at a path, decompressed, or the members of an archive with `wanted` names, by name.

    Raises NotASourceError for a folder and an unreadable file, CorruptDataError for a broken or unsafe archive.
    """
    if Path(path).is_dir():
        raise NotASourceError(f"{path} is a folder: name the files in it")
    plain = DiskFile.at(path)
    members = TextMembers(path, limits, plain.size, wanted=wanted)
    with codec_faults(f"the archive {path}", path), Path(path).open("rb") as stream:
        head = stream.read(TAR_BLOCK)
        stream.seek(0)
        codec = codec_of(head)
        if codec is None and not head.startswith(_ZIP) and not is_tar_header(head):
            return [TextFile(path, plain)]
        if head.startswith(_ZIP):
            read_zip(stream, members)
        else:
            read_tar(stream, members, codec=codec)
    if members.alone:
        return [TextFile(path, file) for file in members.folders[""].values()]
    found = [(folder, name, file) for folder, files in members.folders.items() for name, file in files.items()]
    return [
        TextFile("/".join(filter(None, (path, folder, name))), file)
        for folder, name, file in sorted(found, key=itemgetter(0, 1))
    ]
