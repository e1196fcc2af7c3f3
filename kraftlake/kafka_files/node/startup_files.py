"""Checks for files beside a log that prevent a Kafka node's start although the log itself is sound.

Source: org.apache.kafka.storage.internals.log.LogLoader and ProducerStateManager (names), PartitionMetadataFile,
LeaderEpochCheckpointFile, org.apache.kafka.raft.FileQuorumStateStore and org.apache.kafka.snapshot.Snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from kraftlake.kafka_files.faults import unreadable
from kraftlake.kafka_files.node.partition_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    read_leader_epochs,
    read_topic_id,
)
from kraftlake.kafka_files.node.quorum_state import QUORUM_STATE, read_election_state
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError
from kraftlake.runtime.words import shown

METADATA_TOPIC_ID = Uuid.from_string("AAAAAAAAAAAAAAAAAAAAAQ")
_OFFSET_NAMED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_SNAPSHOTS = (".checkpoint", ".checkpoint.part", ".checkpoint.deleted")
_OFFSET = re.compile(r"[+-]?[0-9]+")
_SNAPSHOT = re.compile(r"([+-]?[0-9]+).([+-]?[0-9]+)", re.DOTALL)
_LONG, _INT = 2**63, 2**31


def check_node_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Return the names of the files in a metadata directory that prevent Kafka's start, and the fault of each."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        yield folder.name, str(unreadable(str(folder), error))
        return
    for name in names:
        if _is_misnamed(name):
            yield (
                shown(name),
                "Kafka takes a file of this ending for its own, and does not start: the name has no offset",
            )
    checks: dict[str, Callable[[Path], None]] = {
        LEADER_EPOCHS: _check_epochs,
        PARTITION_METADATA: _check_topic_id,
        QUORUM_STATE: _check_quorum_state,
    }
    for name, check in checks.items():
        if name in names:
            try:
                check(folder / name)
            except KraftlakeError as error:
                yield name, f"{str(error).removeprefix(f'{name} ')}: Kafka does not start with it"


def _is_misnamed(name: str) -> bool:
    """Whether Kafka would parse an offset from this name, which has none."""
    if name.endswith(_SNAPSHOTS):
        match = _SNAPSHOT.fullmatch(name[:31]) if len(name) >= 31 else None
        fits = match is not None and len(match[1]) == 20 and abs(int(match[1])) < _LONG
        return not (fits and match is not None and abs(int(match[2])) < _INT)
    if name.endswith(_OFFSET_NAMED):
        offset = name.partition(".")[0]
        return _OFFSET.fullmatch(offset) is None or abs(int(offset)) >= _LONG
    return False


def _check_epochs(file: Path) -> None:
    read_leader_epochs(file)


def _check_quorum_state(file: Path) -> None:
    read_election_state(file.parent)


def _check_topic_id(file: Path) -> None:
    topic_id = read_topic_id(file)
    if topic_id != METADATA_TOPIC_ID:
        raise CorruptDataError(f"has the topic id {topic_id}, which is another topic's than __cluster_metadata")
