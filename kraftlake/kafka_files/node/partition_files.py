"""The text files of partitions: leader epochs, the topic's id, checkpoints of offsets.

Source: org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile and PartitionMetadataFile.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from kraftlake.kafka_files.faults import unreadable
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.words import shown

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
MAX_SIZE = 16 * 1024 * 1024
_NUMBER = re.compile(r"[+-]?[0-9]+")


def read_leader_epochs(file: Path) -> tuple[tuple[int, int], ...]:
    """Parse a file by `parse_leader_epochs`; raises NotASourceError if it can't be read."""
    return parse_leader_epochs(_content(file))


def parse_leader_epochs(content: bytes) -> tuple[tuple[int, int], ...]:
    """Parse the epochs in a `leader-epoch-checkpoint`, each with its start offset; an empty file has none.

    Raises CorruptDataError for content with which Kafka does not start.
    """
    entries = []
    for line in _entries(content):
        pair = line.split()
        if len(pair) != 2 or not all(map(_is_offset, pair)):
            raise CorruptDataError(f"has the line {shown(line)!r}, which is no epoch with its start offset")
        entries.append((int(pair[0]), int(pair[1])))
    return tuple(entries)


def parse_offsets(content: bytes) -> tuple[tuple[str, int, int], ...]:
    """Parse the topic, partition and offset of each entry in a checkpoint of offsets; an empty file has none.

    Raises CorruptDataError for content that Kafka refuses.
    """
    entries = []
    for line in _entries(content):
        words = line.split()
        if len(words) != 3 or not all(map(_is_offset, words[1:])):
            raise CorruptDataError(f"has the line {shown(line)!r}, which is no partition with its offset")
        entries.append((words[0], int(words[1]), int(words[2])))
    return tuple(entries)


def _entries(content: bytes) -> list[str]:
    """Return the lines after the version and the count."""
    lines = _lines(content)
    if lines and lines[0].strip() != "0":
        raise CorruptDataError(f"has the version {shown(lines[0])!r}, not 0")
    if len(lines) >= 2 and lines[1].strip() != str(len(lines) - 2):
        raise CorruptDataError(f"has {len(lines) - 2} entries, not {shown(lines[1])}")
    return lines[2:]


def _is_offset(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None and int(word) >= 0


def read_topic_id(file: Path) -> Uuid:
    """Parse a file by `parse_topic_id`; raises NotASourceError if it can't be read."""
    return parse_topic_id(_content(file))


def parse_topic_id(content: bytes) -> Uuid:
    """Parse the topic's id in a `partition.metadata`; raises as `parse_leader_epochs`."""
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
    """The content of a `leader-epoch-checkpoint` for epochs, each with its start offset."""
    return _checkpoint([f"{epoch} {start}" for epoch, start in entries])


def offsets_content(entries: Iterable[tuple[str, int, int]]) -> bytes:
    """The content of a checkpoint of offsets: the topic, partition and offset of each entry."""
    return _checkpoint([f"{topic} {partition} {offset}" for topic, partition, offset in entries])


def _checkpoint(entries: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in ("0", str(len(entries)), *entries)).encode()


def topic_id_content(topic_id: Uuid) -> bytes:
    """The content of a `partition.metadata`."""
    return f"version: 0\ntopic_id: {topic_id}".encode()
