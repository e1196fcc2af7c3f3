"""Recognises a SOURCE by content, or reports the actual content of a path."""

from __future__ import annotations

import stat
from pathlib import Path

from kraftlake.kafka_files.faults import unreadable
from kraftlake.kafka_files.file_names import (
    ARCHIVE_SUFFIXES,
    META_PROPERTIES,
    METADATA_DIRECTORY,
    is_log_file,
    is_packed_log_file,
    partition_of,
    segment_base_offset,
    snapshot_id,
    unpacked_name,
)
from kraftlake.kafka_files.sniffing.file_content import HEAD_SIZE, Content, recognise
from kraftlake.kafka_files.sniffing.nested import archives_below, metadata_directories
from kraftlake.kafka_files.sniffing.source_kind import SourceKind, has_lake_log
from kraftlake.kafka_files.stored_file import DiskFile, StoredFile
from kraftlake.records.batch_header import MIN_LENGTH
from kraftlake.runtime.errors import CorruptDataError, NotASourceError
from kraftlake.runtime.words import shown

_DELTA_LOG = "_delta_log"
_LAKE_LOG = "log"
_WAY_OUT = "name a lake, a __cluster_metadata-0 directory, a segment, a snapshot or an archive of them"


def sniff(path: str | Path) -> SourceKind:
    """Return the kind of SOURCE at `path`; a lake is recognised by its Delta table `log/`.

    A URI of an object store (`s3://…`) can only be a lake, and is not read. Raises NotASourceError with the actual
    content, and the way out.
    """
    if "://" in str(path):
        return SourceKind.LAKE
    target = Path(path)
    try:
        mode = target.stat().st_mode
        if stat.S_ISDIR(mode):
            return _sniff_folder(target)
    except FileNotFoundError:
        raise NotASourceError(f"{target} does not exist: {_WAY_OUT}") from None
    except (OSError, ValueError) as error:
        fault = error if isinstance(error, OSError) else OSError(str(error))
        raise unreadable(str(fault.filename or target), fault) from None
    if not stat.S_ISREG(mode):
        raise NotASourceError(f"{target} is neither a folder nor a regular file: {_WAY_OUT}")
    content = look_into(DiskFile.at(target))
    if content.kind is None:
        raise NotASourceError(f"{target} is {content.instead}")
    return content.kind


def look_into(file: StoredFile) -> Content:
    """Recognise one file."""
    stream = file.open()
    try:
        head = stream.read_at(0, min(file.size, HEAD_SIZE))
    finally:
        stream.close()
    return recognise(file.name, min(file.size, len(head)) if len(head) < HEAD_SIZE else file.size, head)


def _sniff_folder(folder: Path) -> SourceKind:
    if has_lake_log(folder):
        return SourceKind.LAKE
    if (folder / _DELTA_LOG).is_dir():
        raise NotASourceError(_delta_table(folder))
    if folder.name == _DELTA_LOG:
        raise NotASourceError(f"{folder} is the log of a Delta table: name the lake that the table belongs to")
    inner = folder / METADATA_DIRECTORY
    if inner.is_dir():
        folder = inner
    names = sorted(entry.name for entry in folder.iterdir())
    log_files = [name for name in names if is_log_file(name) and (folder / name).is_file()]
    if not log_files:
        if folder != inner and (metadata_directories(folder, holds_metadata) or archives_below(folder, _is_archive)):
            return SourceKind.DIRECTORY
        raise NotASourceError(_no_log_files(folder, names))
    contents = [_content(folder / name) for name in _identifying_files(folder, log_files)]
    metadata = any(content.kind in (SourceKind.SEGMENT, SourceKind.SNAPSHOT) for content in contents)
    own_name = folder.absolute().name
    if not metadata and own_name != METADATA_DIRECTORY and any(content.is_data_topic for content in contents):
        raise NotASourceError(
            f"{folder} is the folder of a data topic's partition, not the metadata log: "
            "name the directory __cluster_metadata-0 of a controller or broker"
        )
    if (
        metadata
        or own_name == METADATA_DIRECTORY
        or any(snapshot_id(unpacked_name(name)) is not None for name in log_files)
    ):
        return SourceKind.DIRECTORY
    if partition_of(own_name) is not None:
        raise NotASourceError(
            f"{folder} is the folder of the partition {shown(own_name)}, "
            f"and nothing of a metadata log is in it: {_WAY_OUT}"
        )
    if "quorum-state" in names or any(content.instead != "an empty file" for content in contents):
        return SourceKind.DIRECTORY
    raise NotASourceError(f"{folder} holds only empty segments: {_WAY_OUT}")


def holds_metadata(folder: Path) -> bool:
    """Whether the files of a folder with log files belong to a metadata log."""
    names = sorted(entry.name for entry in folder.iterdir() if is_log_file(entry.name) and entry.is_file())
    contents = (_content(folder / name) for name in _identifying_files(folder, names))
    return any(content.kind in (SourceKind.SEGMENT, SourceKind.SNAPSHOT) for content in contents)


def archives_of(folder: Path) -> list[Path]:
    """Return the archives in a folder without a metadata directory, at any depth; none in any other folder.

    Raises NotASourceError if a folder can't be read.
    """
    try:
        has_log_files = any(is_log_file(entry.name) and entry.is_file() for entry in folder.iterdir())
        if has_log_files or metadata_directories(folder, holds_metadata):
            return []
        return archives_below(folder, _is_archive)
    except OSError as error:
        raise unreadable(str(error.filename or folder), error) from None


def _is_archive(path: Path) -> bool:
    return look_into(DiskFile.at(path)).kind is SourceKind.ARCHIVE


def _content(path: Path) -> Content:
    """Recognise a segment or a snapshot by its content, decompressed if necessary.

    A broken one reports its faults when read.
    """
    if not is_packed_log_file(path.name):
        return look_into(DiskFile.at(path))
    from kraftlake.kafka_files.archives.compression import codec_faults, exactly, unpacked  # costs what archives cost

    try:
        with codec_faults(str(path), str(path)), path.open("rb") as stream:
            head = exactly(unpacked(stream.read, str(path)).read, HEAD_SIZE)
    except CorruptDataError:
        return Content(SourceKind.SEGMENT)
    return recognise(unpacked_name(path.name), len(head), head)


def _identifying_files(folder: Path, log_files: list[str]) -> list[str]:
    """Return the files that identify a folder: the first segment and the first snapshot with a batch header."""
    enough = [name for name in log_files if (folder / name).stat().st_size > MIN_LENGTH]
    segments = [name for name in enough if segment_base_offset(unpacked_name(name)) is not None]
    snapshots = [name for name in enough if snapshot_id(unpacked_name(name)) is not None]
    return segments[:1] + snapshots[:1] or log_files[:1]


def _delta_table(folder: Path) -> str:
    parent = folder.absolute().parent
    if (parent / _LAKE_LOG / _DELTA_LOG).is_dir():
        return f"{folder} is a Delta table of a lake: name the lake, {parent}"
    return f"{folder} is a Delta table, but no lake (a lake is a folder with the Delta table {_LAKE_LOG}/ in it)"


def _no_log_files(folder: Path, names: list[str]) -> str:
    if not names:
        return f"{folder} is an empty folder: {_WAY_OUT}"
    if META_PROPERTIES in names:
        return (
            f"{folder} is a log directory of a Kafka node without a metadata log in it: "
            f"name the node's {METADATA_DIRECTORY} (metadata.log.dir, or the first of log.dirs)"
        )
    renamed = next((name for name in names if name.endswith((".log", ".checkpoint"))), None)
    if renamed is not None:
        return (
            f"{folder} holds no file with a name that Kafka gives to segments or snapshots, but {shown(renamed)}: "
            "name that file alone, or give the files their names back"
        )
    archive = next((name for name in names if name.endswith(ARCHIVE_SUFFIXES)), None)
    if archive is not None:
        return f"{folder} is a folder of archives, not of logs: name one, {folder / shown(archive)}"
    return f"{folder} is a folder without segments (*.log) or snapshots (*.checkpoint): {_WAY_OUT}"
