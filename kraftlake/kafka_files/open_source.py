"""Opens any SOURCE that consists of Kafka's files."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory, NodeFiles, log_of, node_named, nodes_in_directory
from kraftlake.kafka_files.node.meta_properties import MetaProperties, find_properties
from kraftlake.kafka_files.sniffing.sniffing import archives_of, sniff
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, NotASourceError

T = TypeVar("T")

STDIN: Final = "-"
"""The path that stands for stdin."""


def open_kafka_files(path: str | Path, kind: SourceKind | None = None, *, node: int | None = None) -> MetadataDirectory:
    """Open a directory, a segment, a snapshot or an archive; a known `kind` skips the recognition.

    `-` is stdin. `node` chooses one of several nodes' logs by id. Raises NotASourceError for any other source,
    including a lake, and without a unique choice.
    """
    return node_named(node_files(path, kind), node, "stdin" if str(path) == STDIN else str(path)).open()


def node_files(path: str | Path, kind: SourceKind | None = None) -> tuple[NodeFiles, ...]:
    """Return the metadata logs at a path, one for each node: several in a bundle of folders or archives.

    Raises as `open_kafka_files`; a broken log is one of them, whose `open` raises.
    """
    if str(path) == STDIN:
        return _of_stdin(sys.stdin.buffer)
    match kind or sniff(path):
        case SourceKind.DIRECTORY:
            if archives := archives_of(Path(path)):
                from kraftlake.kafka_files.archives.archive import nodes_in_archives  # costs what archives cost

                return nodes_in_archives(archives)
            return nodes_in_directory(path)
        case SourceKind.SEGMENT | SourceKind.SNAPSHOT as kind:
            properties = MetaProperties(cluster_id=find_properties(Path(path).absolute().parent).cluster_id)
            return (NodeFiles(folder=str(path), properties=properties, open=partial(_open_file, path, kind)),)
        case SourceKind.ARCHIVE:
            from kraftlake.kafka_files.archives.archive import nodes_in_archive  # costs what archives cost

            return nodes_in_archive(path)
        case SourceKind.LAKE:
            raise NotASourceError(f"{path} is a lake, not Kafka's own files")


def _open_file(path: str | Path, kind: SourceKind) -> MetadataDirectory:
    """Open a single segment or snapshot, identified by its content and not by its name, as a log of its own.

    The segment is the last one of that log, so its tail may be torn. A snapshot is a log without batches that starts at
    the snapshot's end.
    """
    file = DiskFile.at(path)
    cluster_id = find_properties(Path(path).absolute().parent).cluster_id
    return log_of([file], kind=kind, path=str(path), name=file.name, cluster_id=cluster_id)


def _of_stdin(stdin: BinaryIO) -> tuple[NodeFiles, ...]:
    """Return the logs in stdin's data; repeated calls are possible."""
    path = _copy_of(stdin)
    nodes = _naming_stdin(partial(node_files, path), path)
    return tuple(
        attrs.evolve(
            one,
            folder=_plain(one.folder, path),
            archive=None if one.archive is None else STDIN,
            open=partial(_opened, one, path),
        )
        for one in nodes
    )


@lru_cache(maxsize=1)
def _copy_of(stdin: BinaryIO) -> str:
    """Return the path of a copy of stdin's data, in a file without a name, which ends with the process."""
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - its descriptor outlives it
    with spool:
        shutil.copyfileobj(stdin, spool, 1024 * 1024)
        spool.flush()
        return f"/dev/fd/{os.dup(spool.fileno())}"


def _opened(node: NodeFiles, path: str) -> MetadataDirectory:
    return attrs.evolve(_naming_stdin(node.open, path), path=STDIN, name="stdin")


def _naming_stdin(call: Callable[[], T], path: str) -> T:
    """Return the result of a function; its errors name stdin instead of the copy."""
    try:
        return call()
    except KraftlakeError as error:
        kind = CorruptDataError if isinstance(error, CorruptDataError) else NotASourceError
        raise kind(_plain(str(error), path)) from None


def _plain(text: str, path: str) -> str:
    return text.replace(path, "stdin")
