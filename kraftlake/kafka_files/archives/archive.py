"""Metadata directories inside a tar or a zip, and compressed single files: streamed, never extracted.

A plain tar is read in place; the log files of a compressed archive are kept in memory as compressed blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs

from kraftlake.kafka_files.archives.compression import codec_faults, codec_of
from kraftlake.kafka_files.archives.members import DEFAULT_LIMITS, ArchiveLimits, Members
from kraftlake.kafka_files.archives.tar_archive import read_tar
from kraftlake.kafka_files.archives.zip_archive import read_zip
from kraftlake.kafka_files.directory import MetadataDirectory, NodeFiles, log_of, node_named
from kraftlake.kafka_files.file_names import METADATA_DIRECTORY
from kraftlake.kafka_files.node.meta_properties import MetaProperties, find_properties, nearest_properties
from kraftlake.kafka_files.sniffing.sniffing import look_into
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile, StoredFile
from kraftlake.runtime.errors import CorruptDataError, NotASourceError
from kraftlake.runtime.words import counted, shown


def open_archive(
    path: str | Path, limits: ArchiveLimits = DEFAULT_LIMITS, *, node: int | None = None
) -> MetadataDirectory:
    """Open the metadata directory in an archive, at any depth; if several exist, the one of the `node`.

    Raises NotASourceError if none exists, or if several exist and `node` does not choose one (the error names them),
    CorruptDataError for an archive that is broken, exceeds `limits`, or holds links, or members with absolute paths or
    `..`.
    """
    return node_named(nodes_in_archive(path, limits), node, f"the archive {path}").open()


def nodes_in_archive(path: str | Path, limits: ArchiveLimits = DEFAULT_LIMITS) -> tuple[NodeFiles, ...]:
    """Return the metadata directories in an archive, at any depth, by folder. Raises as `open_archive`."""
    return _nodes(_read(path, limits))


def nodes_in_archives(paths: Sequence[Path], limits: ArchiveLimits = DEFAULT_LIMITS) -> tuple[NodeFiles, ...]:
    """Return the metadata directories in several archives, which together keep within the `limits`.

    Archives without any are skipped; a broken one is a node whose `open` raises CorruptDataError. Raises
    NotASourceError if no archive holds any.
    """
    found: list[NodeFiles] = []
    without: list[NotASourceError] = []
    for path in paths:
        try:
            members = _read(path, limits)
            limits = members.left()
            nodes = _nodes(members)
            found += [attrs.evolve(node, folder=f"{path}/{node.folder}") for node in nodes]
        except NotASourceError as fault:
            without.append(fault)
        except CorruptDataError as fault:
            found.append(NodeFiles(folder=str(path), archive=str(path), open=partial(_raise, fault)))
    if not found:
        raise without[0]
    return tuple(found)


def _raise(fault: CorruptDataError) -> MetadataDirectory:
    raise fault


def _read(path: str | Path, limits: ArchiveLimits) -> Members:
    members = Members(str(path), limits, DiskFile.at(path).size)
    with codec_faults(f"the archive {path}", str(path)), Path(path).open("rb") as stream:
        head = stream.read(8)
        stream.seek(0)
        if head.startswith(b"PK"):
            read_zip(stream, members)
        else:
            read_tar(stream, members, codec=codec_of(head))
    return members


def _nodes(members: Members) -> tuple[NodeFiles, ...]:
    if members.alone:
        return (_single_file(members, Path(members.path)),)
    return tuple(_node(members, folder) for folder in _metadata_folders(members))


def _node(members: Members, folder: str) -> NodeFiles:
    properties = nearest_properties(members.properties, folder)
    log = partial(
        log_of,
        list(members.folders[folder].values()),
        kind=SourceKind.ARCHIVE,
        path=members.path,
        name=folder.rpartition("/")[2] or Path(members.path).name,
        cluster_id=properties.cluster_id,
    )
    state = members.quorum_states.get(folder)
    return NodeFiles(folder=folder or ".", archive=members.path, properties=properties, quorum_state=state, open=log)


def _single_file(members: Members, path: Path) -> NodeFiles:
    """Return a segment or a snapshot that is compressed on its own."""
    (file,) = members.folders[""].values()
    content = look_into(file)
    if content.kind not in (SourceKind.SEGMENT, SourceKind.SNAPSHOT):
        raise NotASourceError(f"{path} is compressed, and what it unpacks to is {content.instead or 'compressed too'}")
    properties = MetaProperties(cluster_id=find_properties(path.absolute().parent).cluster_id)
    log = partial(log_of, [file], kind=content.kind, path=str(path), name=file.name, cluster_id=properties.cluster_id)
    return NodeFiles(folder=path.name, properties=properties, open=log)


def _metadata_folders(members: Members) -> list[str]:
    """Return the metadata directories' folders in the archive: by name, else by the content of their files."""
    named = [folder for folder in members.folders if folder.rpartition("/")[2] == METADATA_DIRECTORY]
    found = sorted(named or (f for f, files in members.folders.items() if _is_metadata(list(files.values()))))
    if not found:
        what = "only data topics' segments" if members.folders else "no segments (*.log) or snapshots (*.checkpoint)"
        if members.archives:
            raise NotASourceError(
                f"the archive {members.path} holds {what}, but {counted(len(members.archives), 'archive')}, "
                f"{shown(members.archives[0])} first: unpack it, and name the folder that they then lie in"
            )
        raise NotASourceError(
            f"the archive {members.path} holds {what}, and no {METADATA_DIRECTORY}: "
            "pack that directory of a controller or broker"
        )
    return found


def _is_metadata(files: list[StoredFile]) -> bool:
    first_files = sorted((file for file in files if file.size > 0), key=lambda file: file.name)[:3]
    return any(look_into(file).kind in (SourceKind.SEGMENT, SourceKind.SNAPSHOT) for file in first_files)
