"""The files of text in a partition's folder: its leader epochs and the id of its topic.

Source: org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile and PartitionMetadataFile.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from kraftlake.kafka_files.faults import unreadable
from kraftlake.records.uuid import Uuid
from kraftlake.runtime import shown
from kraftlake.runtime.errors import CorruptDataError

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
MAX_SIZE = 16 * 1024 * 1024
_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_leader_epochs(file: Path) -> tuple[tuple[int, int], ...]:
    """`parse_leader_epochs` of a file; raises NotASourceError where it can't be read."""
    return parse_leader_epochs(_content(file))


def parse_leader_epochs(content: bytes) -> tuple[tuple[int, int], ...]:
    """The epochs in a `leader-epoch-checkpoint`, each with its start offset; an empty file has none.

    Raises CorruptDataError for a content that Kafka does not start with.
    """
    lines = _lines(content)
    if lines and lines[0].strip() != "0":
        raise CorruptDataError(f"has the version {shown(lines[0])!r}, not 0")
    if len(lines) < 2:
        return ()
    entries = []
    for line in lines[2:]:
        pair = line.split()
        if len(pair) != 2 or not all(_NUMBER.fullmatch(number) and int(number) >= 0 for number in pair):
            raise CorruptDataError(f"has the line {shown(line)!r}, which is no epoch with its start offset")
        entries.append((int(pair[0]), int(pair[1])))
    if lines[1].strip() != str(len(entries)):
        raise CorruptDataError(f"has {len(entries)} entries, not {shown(lines[1])}")
    return tuple(entries)


def read_topic_id(file: Path) -> Uuid:
    """`parse_topic_id` of a file; raises NotASourceError where it can't be read."""
    return parse_topic_id(_content(file))


def parse_topic_id(content: bytes) -> Uuid:
    """The id of the topic in a `partition.metadata`; raises as `parse_leader_epochs`."""
    lines = [line.split() for line in _lines(content)[:2]]
    if [len(line) for line in lines] != [2, 2] or not lines[0][1].isdecimal():
        raise CorruptDataError("is not what Kafka writes there, a version and a topic id")
    try:
        return Uuid.from_string(lines[1][1])
    except ValueError:
        raise CorruptDataError(f"has the topic id {shown(lines[1][1])!r}, which is none") from None


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_SIZE)
    except OSError as error:
        raise unreadable(str(file), error) from None


def _lines(content: bytes) -> list[str]:
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        raise CorruptDataError("is not UTF-8") from None


def leader_epochs_content(entries: Collection[tuple[int, int]]) -> bytes:
    """The content of a `leader-epoch-checkpoint` of epochs, each with its start offset."""
    lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
    return ("\n".join(lines) + "\n").encode()


def topic_id_content(topic_id: Uuid) -> bytes:
    """The content of a `partition.metadata`."""
    return f"version: 0\ntopic_id: {topic_id}".encode()
