"""A metadata directory inside a `.tar`, `.tar.gz` or `.zip`: streamed, never extracted.

A plain tar is read in place; the log files of a compressed archive are kept in memory as compressed blocks.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraftlake.kafka_files.archives.members import DEFAULT_LIMITS, ArchiveLimits, Members
from kraftlake.kafka_files.archives.tar_archive import read_tar
from kraftlake.kafka_files.archives.zip_archive import read_zip
from kraftlake.kafka_files.directory import MetadataDirectory, log_of
from kraftlake.kafka_files.faults import unreadable
from kraftlake.kafka_files.file_names import METADATA_DIRECTORY, shown
from kraftlake.kafka_files.sniffing.sniffing import look_into
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile, StoredFile
from kraftlake.runtime.errors import CorruptDataError, NotASourceError


def open_archive(path: str | Path, limits: ArchiveLimits = DEFAULT_LIMITS) -> MetadataDirectory:
    """Open the one metadata directory that an archive holds, at any depth.

    Raises NotASourceError where there is none or more than one (named), CorruptDataError for an archive that is
    broken, exceeds `limits`, or holds links, or members with absolute paths or `..`.
    """
    members = Members(str(path), limits, DiskFile.at(path).size)
    with _archive_faults(str(path)), Path(path).open("rb") as stream:
        magic = stream.read(4)
        stream.seek(0)
        if magic.startswith(b"PK"):
            read_zip(stream, members)
        else:
            read_tar(stream, members, compressed=magic.startswith(b"\x1f\x8b"))
    folder = _metadata_folder(members)
    return log_of(
        list(members.folders[folder].values()),
        kind=SourceKind.ARCHIVE,
        path=str(path),
        name=folder.rpartition("/")[2] or Path(path).name,
        cluster_id=_cluster_id(members, folder),
    )


def _metadata_folder(members: Members) -> str:
    """The metadata directory's folder in the archive: by its name, else by the content of its files."""
    named = [folder for folder in members.folders if folder.rpartition("/")[2] == METADATA_DIRECTORY]
    candidates = sorted(named or (f for f, files in members.folders.items() if _is_metadata(list(files.values()))))
    if not candidates:
        what = "only data topics' segments" if members.folders else "no segments (*.log) or snapshots (*.checkpoint)"
        raise NotASourceError(
            f"the archive {members.path} holds {what}, and no {METADATA_DIRECTORY}: "
            "pack that directory of a controller or broker"
        )
    if len(candidates) > 1:
        some = ", ".join(shown(folder) or "." for folder in candidates[:5])
        raise NotASourceError(
            f"the archive {members.path} holds {len(candidates)} metadata directories ({some}): unpack it and name one"
        )
    return candidates[0]


def _is_metadata(files: list[StoredFile]) -> bool:
    telling = sorted((file for file in files if file.size > 0), key=lambda file: file.name)[:3]
    return any(look_into(file).kind in (SourceKind.SEGMENT, SourceKind.SNAPSHOT) for file in telling)


def _cluster_id(members: Members, folder: str) -> str | None:
    """The cluster id in the nearest `meta.properties`: in the folder or up to two levels above."""
    parts = folder.split("/") if folder else []
    for depth in range(len(parts), max(len(parts) - 3, -1), -1):
        found = members.cluster_ids.get("/".join(parts[:depth]))
        if found is not None:
            return found
    return None


@contextmanager
def _archive_faults(path: str) -> Iterator[None]:
    """Convert the errors of archive readers at bad bytes into kraftlake's."""
    try:
        yield
    except EOFError:
        raise CorruptDataError(f"the archive {path} is cut short") from None
    except (zipfile.BadZipFile, zlib.error, struct.error, ValueError, NotImplementedError, RuntimeError) as error:
        raise CorruptDataError(f"the archive {path} is broken: {error}") from None
    except OSError as error:
        if error.errno is None:  # gzip reports a bad checksum this way
            raise CorruptDataError(f"the archive {path} is broken: {error}") from None
        raise unreadable(path, error) from None
