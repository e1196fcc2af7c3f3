"""The state of the quorum in a log's control records: leader, kraft.version and voters; the leader at an offset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.control_records import VotersRecord
    from kraftlake.records.serde import AnyMessage
    from kraftlake.replay.reading.open_reader import LogReader


@attrs.frozen(kw_only=True)
class QuorumState:
    """The newest control records up to an offset.

    They change no image, but a snapshot file carries kraft.version and voters (KIP-853) in its header batch.
    `voters` is None for a static quorum: the controllers' configuration names its voters, and the newest leader the
    `static_voters`.
    """

    leader_id: int | None = None
    kraft_version: int = 0
    voters: VotersRecord | None = None
    static_voters: tuple[int, ...] = attrs.field(default=(), eq=False)

    def after(self, batch: RecordBatch, first: int = 0, last: int | None = None) -> QuorumState:
        """The state after the control records of a batch at the offsets [first, last]; data changes nothing."""
        changes = [*self.changes(batch, first, last)]
        return changes[-1].state if changes else self

    def changes(self, batch: RecordBatch, first: int = 0, last: int | None = None) -> Iterator[QuorumChange]:
        """The changes by the control records of a batch at the offsets [first, last]."""
        from kraftlake.records.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord

        state = self
        for offset, record in enumerate(batch.messages() if batch.control else (), start=batch.base_offset):
            message = record.message
            if not first <= offset <= (batch.last_offset if last is None else last):
                continue
            if isinstance(message, LeaderChangeMessage):
                named = tuple(sorted(voter.voter_id for voter in message.voters))
                state = attrs.evolve(state, leader_id=message.leader_id, static_voters=named)
            elif isinstance(message, KRaftVersionRecord):
                state = attrs.evolve(state, kraft_version=message.k_raft_version)
            elif isinstance(message, VotersRecord):
                state = attrs.evolve(state, voters=message)
            else:
                continue
            yield QuorumChange(offset=offset, epoch=batch.epoch, time=batch.timestamp, message=message, state=state)


@attrs.frozen(kw_only=True)
class QuorumChange:
    """A control record, and the state of the quorum after it.

    `epoch` and `time` (epoch ms, -1 for none) are those of its batch.
    """

    offset: int
    epoch: int
    time: int
    message: AnyMessage
    state: QuorumState


def voters_json(voters: VotersRecord | None) -> dict[int, dict[str, Any]]:
    """The voters in a record by id, in the form of JSON; none for a static quorum."""
    return {
        voter.voter_id: {
            "directoryId": str(voter.voter_directory_id),
            "endpoints": {each.name: {"host": each.host, "port": each.port} for each in voter.endpoints},
            "kraftVersions": [
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            ],
        }
        for voter in (() if voters is None else voters.voters)
    }


def leader_at(reader: LogReader, offset: int) -> int | None:
    """The node that leads the quorum in the epoch of an offset; None where the log lacks the begin of that epoch."""
    return leader_change_at(reader, offset).leader_id


def leader_change_at(reader: LogReader, offset: int) -> QuorumState:
    """The state by the control records with which the epoch of an offset begins; the first where the log lacks them.

    A leader begins its epoch with a LeaderChangeMessage: that batch is searched by halves, as epochs never go down.
    """
    low, high = reader.start_offset, min(offset, reader.end_offset - 1)
    if high < low:
        return QuorumState()
    epoch = next(reader.batches(high, high)).epoch
    while low < high:
        middle = (low + high) // 2
        batch = next(reader.batches(middle, middle))
        if batch.epoch < epoch:
            low = batch.last_offset + 1
        else:
            high = max(low, batch.base_offset)
    return QuorumState().after(next(reader.batches(low, low)))
