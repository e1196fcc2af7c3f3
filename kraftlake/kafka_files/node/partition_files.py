"""The files of text in a partition's folder: its leader epochs and the id of its topic.

Source: org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile and PartitionMetadataFile.
"""

from __future__ import annotations

import re
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
    """The epochs in a `leader-epoch-checkpoint`, each with its start offset; an empty file has none.

    Raises CorruptDataError for a content that Kafka does not start with, NotASourceError where it can't be read.
    """
    lines = _lines(file)
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
    """The id of the topic in a `partition.metadata`; raises as `read_leader_epochs`."""
    lines = [line.split() for line in _lines(file)[:2]]
    if [len(line) for line in lines] != [2, 2] or not lines[0][1].isdecimal():
        raise CorruptDataError("is not what Kafka writes there, a version and a topic id")
    try:
        return Uuid.from_string(lines[1][1])
    except ValueError:
        raise CorruptDataError(f"has the topic id {shown(lines[1][1])!r}, which is none") from None


def _lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_SIZE).decode().splitlines()
    except OSError as error:
        raise unreadable(str(file), error) from None
    except UnicodeDecodeError:
        raise CorruptDataError("is not UTF-8") from None
