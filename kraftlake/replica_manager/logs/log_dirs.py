"""Comparison of a real broker's log directories with an image, without changes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.broker_partitions import hosted_partitions
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.directory_id import LOST
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.cleaning.compacted_folders import CompactedFolder, compacted_folders
from kraftlake.replica_manager.logs.log_manager import is_reserved
from kraftlake.replica_manager.logs.partition_folder import DELETE, FUTURE, STRAY, PartitionFolder
from kraftlake.runtime.arguments import path_texts, whole
from kraftlake.runtime.errors import NotASourceError, UsageError

METADATA_FILE = "partition.metadata"
_LARGEST_FILE = 64 * 1024


@attrs.frozen(kw_only=True)
class LogDirFinding:
    """A folder that contradicts the image, or a missing folder (`path` None); `topic_id` is the id in the folder."""

    partition: str
    path: str | None
    expected: str | None
    reason: str
    topic_id: Uuid | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON of `kraftlake replay --json`."""
        return {"partition": self.partition, "path": self.path, "expected": self.expected, "reason": self.reason}


@attrs.frozen(kw_only=True)
class LogDirReport:
    """The result of a comparison.

    `directories` has the directory ids by path, None for a directory without an id. `matching` counts the folders that
    agree with the image. `missing` replicas have no folder, `strays` are folders without a replica on the broker,
    `misplaced` folders lie in another directory than in the image. `moving` (future logs) and `deleted` (folders marked
    for deletion) do not contradict the image. `compacted` are the logs of compacted topics.
    """

    directories: dict[str, Uuid | None]
    matching: int
    missing: tuple[LogDirFinding, ...]
    strays: tuple[LogDirFinding, ...]
    misplaced: tuple[LogDirFinding, ...]
    moving: tuple[str, ...]
    deleted: tuple[str, ...]
    compacted: tuple[CompactedFolder, ...]

    def to_json(self) -> dict[str, Any]:
        """The JSON of `kraftlake replay --json`."""
        return {
            "directories": {path: None if id_ is None else str(id_) for path, id_ in self.directories.items()},
            "matching": self.matching,
            "missing": [finding.to_json() for finding in self.missing],
            "stray": [finding.to_json() for finding in self.strays],
            "wrongDirectory": [finding.to_json() for finding in self.misplaced],
            "moving": list(self.moving),
            "deleted": list(self.deleted),
            "compacted": [folder.to_json() for folder in self.compacted],
        }


def check_log_dirs(paths: Iterable[str | os.PathLike[str]], *, cluster_id: str | None = None) -> None:
    """Raise NotASourceError for the first path that is not a folder, before a long comparison starts.

    With a `cluster_id`, also raise UsageError for the first folder whose `meta.properties` has another id.
    """
    for path in path_texts(paths):
        if not Path(path).is_dir():
            raise NotASourceError(f"{path} is no log directory of a broker: there is no such folder.")
        theirs = None if cluster_id is None else find_properties(Path(path)).cluster_id
        if theirs not in (None, cluster_id):
            raise UsageError(f"{path} is a log directory of cluster {theirs}, not of cluster {cluster_id}.")


def compare_log_dirs(image: MetadataImage, broker_id: int, paths: Iterable[str | os.PathLike[str]]) -> LogDirReport:
    """Compare a broker's log directories with an image.

    A folder's partition follows from its name and the topic id in its `partition.metadata`. Strays are defined as at
    the start of Kafka's broker (LogManager.isStrayReplica). Raises NotASourceError for a path that is not a folder.
    """
    broker_id = whole(broker_id, "a broker's id", least=0)
    expected = {TopicPartition(name, id_): state for name, id_, state in hosted_partitions(image.topics, broker_id)}
    ids: dict[str, Uuid | None] = {}
    strays: list[LogDirFinding] = []
    misplaced: list[LogDirFinding] = []
    moving: list[str] = []
    deleted: list[str] = []
    found: set[TopicPartition] = set()
    matching = 0
    for path in map(Path, path_texts(paths)):
        directory_id = ids[str(path)] = _directory_id(path)
        for folder, name, mark in _folders(path):
            if mark == DELETE:
                deleted.append(str(folder))
                continue
            if mark == FUTURE:
                moving.append(str(folder))
                continue
            state = expected.get(name)
            why = _why_stray(image, name, folder, broker_id, marked=mark == STRAY)
            if state is None or why:
                stray = LogDirFinding(partition=str(name), path=str(folder), expected=None, reason=why)
                strays.append(attrs.evolve(stray, topic_id=_topic_id(folder)))
                continue
            assigned = state.directory(broker_id)
            first = name not in found
            found.add(name)
            if assigned is not None and not is_reserved(assigned) and directory_id not in (None, assigned):
                reason = f"it lies in directory {directory_id}, and the image says {assigned}"
                misplaced.append(
                    LogDirFinding(partition=str(name), path=str(folder), expected=str(assigned), reason=reason)
                )
            elif first:
                matching += 1
    missing = [
        LogDirFinding(
            partition=str(name),
            path=None,
            expected=_shown(state.directory(broker_id)),
            reason=_why_missing(state.directory(broker_id), ids),
        )
        for name, state in sorted(expected.items())
        if name not in found
    ]
    return LogDirReport(
        directories=ids,
        matching=matching,
        missing=tuple(missing),
        strays=tuple(strays),
        misplaced=tuple(misplaced),
        moving=tuple(moving),
        deleted=tuple(deleted),
        compacted=tuple(compacted_folders(image, ids)),
    )


def _folders(path: Path) -> Iterator[tuple[Path, TopicPartition, str]]:
    """Yield the partition folders in a log directory, with the mark of a PartitionFolder."""
    check_log_dirs((path,))
    for folder in sorted(path.iterdir()):
        found = PartitionFolder.parse(folder.name)
        if found is not None and not folder.is_symlink() and folder.is_dir():
            yield folder, found.topic_partition, found.mark


def _why_stray(image: MetadataImage, name: TopicPartition, folder: Path, broker_id: int, *, marked: bool) -> str:
    """The reason why a folder is stray; empty for a folder that the broker should have."""
    topic = image.topics.get_topic(name.topic)
    topic_id = _topic_id(folder)
    if topic_id is not None and (topic is None or topic.id != topic_id):
        known = "" if topic is None else f"; the topic of that name has the id {topic.id}"
        return f"the topic with id {topic_id} does not exist{known}"
    if topic is None:
        return "there is no such topic"
    state = topic.partitions.get(name.partition)
    if state is None:
        return f"the topic has {len(topic.partitions)} partitions"
    if broker_id not in state.replicas:
        return f"the replicas are on brokers {', '.join(map(str, state.replicas))}"
    return "a broker has marked it as a stray" if marked else ""


def _why_missing(assigned: Uuid | None, ids: dict[str, Uuid | None]) -> str:
    if assigned is None or is_reserved(assigned):
        return "its directory is lost" if assigned == LOST else "no directory has a folder for it"
    if None not in ids.values() and assigned not in ids.values():
        return f"it should lie in directory {assigned}, which was not given"
    return "the directory that it should lie in has no folder for it"


def _shown(directory: Uuid | None) -> str | None:
    return None if directory is None or is_reserved(directory) else str(directory)


def _topic_id(folder: Path) -> Uuid | None:
    return _id_in(folder / METADATA_FILE, r"topic_id\s*:\s*(\S+)")


def _directory_id(path: Path) -> Uuid | None:
    return _id_in(path / "meta.properties", r"directory\.id\s*=\s*(\S+)")


def _id_in(file: Path, pattern: str) -> Uuid | None:
    try:
        with file.open("rb") as stream:
            text = stream.read(_LARGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return None
    match = re.search(f"^{pattern}$", text, re.MULTILINE)
    try:
        return None if match is None else Uuid.from_string(match[1])
    except ValueError:
        return None
