"""The histories of the quorum of controllers, which are made of control records: its leaders and its voters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.control_records import KRaftVersionRecord, LeaderChangeMessage, Voter, VotersRecord
from kraftlake.tables.history.entity_table import TEXTS, Changed, Key, Known, RowTable, State, column

if TYPE_CHECKING:
    from kraftlake.replay.loader.quorum_state import QuorumChange, QuorumState
    from kraftlake.replay.log.delta_chunk import DeltaChunk

_IDS: Final = pa.list_(pa.int32())


@attrs.frozen(kw_only=True, eq=False)
class QuorumTable(RowTable):
    """A history table of what control records say: `changed` returns the states that one of them changes, by key.

    It gets the open states by key: a replay that begins with a snapshot does not know who leads.
    """

    first: Callable[[QuorumState], Mapping[Key, State]]
    """The states by key at the end of a snapshot."""
    changed: Callable[[QuorumChange, Mapping[Key, State]], Mapping[Key, State | None]]

    def begins(self, image: MetadataImage, quorum: QuorumState) -> Iterable[tuple[Key, State]]:  # noqa: ARG002 - no image has them
        """The states at the end of a snapshot."""
        return self.first(quorum).items()

    def changes(self, chunk: DeltaChunk, known: Known) -> Iterator[Changed]:
        """The states that control records may have changed, by their offsets."""
        states = known() if chunk.quorum else {}
        for change in chunk.quorum:
            changed = self.changed(change, states)
            yield change.offset, change.time, changed
            states = {key: state for key, state in {**states, **changed}.items() if state is not None}


def _led(change: QuorumChange, states: Mapping[Key, State]) -> Mapping[Key, State | None]:
    """The state of the quorum after a control record; none before its first leader."""
    before, message = states.get(()), change.message
    if isinstance(message, LeaderChangeMessage):
        ids = ([voter.voter_id for voter in voters] for voters in (message.voters, message.granting_voters))
        return {(): (change.epoch, message.leader_id, change.state.kraft_version, *map(sorted, ids))}
    if isinstance(message, KRaftVersionRecord) and before is not None:
        return {(): (*before[:2], message.k_raft_version, *before[3:])}
    return {}


QUORUM: Final = QuorumTable(
    name="quorum_history",
    comment="Who led the quorum of controllers, in which epoch, from when to when",
    key=(),
    own_columns=(
        column("epoch", pa.int32(), "the epoch of the leader"),
        column("leader", pa.int32(), "the controller that led"),
        column(
            "kraft_version", pa.int32(), "the finalized kraft.version: 0 for a static quorum, 1 for one with voters"
        ),
        column("voters", _IDS, "the ids of the controllers that were voters when the epoch began"),
        column("granting_voters", _IDS, "the ids of the voters that voted for the leader"),
    ),
    first=lambda _: {},
    changed=_led,
)


def _voter(voter: Voter) -> tuple[Any, ...]:
    levels = voter.k_raft_version_feature
    return (
        voter.voter_id,
        str(voter.voter_directory_id),
        [f"{each.name}://{each.host}:{each.port}" for each in voter.endpoints],
        levels.min_supported_version,
        levels.max_supported_version,
    )


def _voters(voters: VotersRecord | None) -> dict[Key, State]:
    return {} if voters is None else {(voter.voter_id,): _voter(voter) for voter in voters.voters}


def _voted(change: QuorumChange, states: Mapping[Key, State]) -> Mapping[Key, State | None]:
    """The voters after a control record: a VotersRecord has all of them."""
    if not isinstance(change.message, VotersRecord):
        return {}
    return {**dict.fromkeys(states), **_voters(change.message)}


VOTERS: Final = QuorumTable(
    name="voter_history",
    comment="The voters of the quorum, by its control records, from when to when",
    key=("voter",),
    own_columns=(
        column("voter", pa.int32(), "the controller's id"),
        column("directory_id", pa.string(), "the id of its directory of the metadata log; each disk has another one"),
        column("endpoints", TEXTS, "where the other voters reach it: NAME://host:port"),
        column("min_kraft_version", pa.int32(), "the lowest kraft.version that it supports"),
        column("max_kraft_version", pa.int32(), "the highest kraft.version that it supports"),
    ),
    first=lambda quorum: _voters(quorum.voters),
    changed=_voted,
)
