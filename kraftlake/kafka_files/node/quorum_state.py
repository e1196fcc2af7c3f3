"""The election state of a node, from the file `quorum-state` in its metadata directory.

Source: org.apache.kafka.raft.FileQuorumStateStore and ElectionState.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from kraftlake.kafka_files.faults import unreadable
from kraftlake.runtime.errors import CorruptDataError

QUORUM_STATE = "quorum-state"
MAX_SIZE = 1024 * 1024
_DATA_VERSIONS = (0, 1)
"""The versions that Kafka 4.4 reads."""


@attrs.frozen(kw_only=True)
class ElectionState:
    """The epoch of a node, the leader of that epoch and the candidate that the node voted for; None if unknown."""

    leader_epoch: int
    leader_id: int | None
    voted_id: int | None


def read_election_state(directory: Path) -> ElectionState | None:
    """Read the state in the file `quorum-state` of `directory`; None without the file.

    Raises CorruptDataError for a file that Kafka could not read either, such as the empty file that a full disk leaves.
    """
    file = directory / QUORUM_STATE
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_SIZE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(str(file), error) from None
    return parse_election_state(content)


def parse_election_state(content: bytes) -> ElectionState:
    """Parse the content of a file `quorum-state`; raises CorruptDataError as `read_election_state`."""
    if not content.strip():
        raise CorruptDataError(f"{QUORUM_STATE} is empty")
    try:
        said = json.loads(content)
        if _number(said["data_version"]) not in _DATA_VERSIONS:
            raise ValueError
        return ElectionState(
            leader_epoch=_number(said["leaderEpoch"]),
            leader_id=_known(_number(said["leaderId"])),
            voted_id=_known(_number(said["votedId"])),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CorruptDataError(f"{QUORUM_STATE} is not what Kafka writes there") from None


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _known(id_: int) -> int | None:
    return id_ if id_ >= 0 else None
