"""The state of the quorum in a log's control records: leader, kraft.version and voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from kraftlake.records.control_records import VotersRecord


@attrs.frozen(kw_only=True)
class QuorumState:
    """The newest control records up to an offset.

    They change no image, but a snapshot file carries kraft.version and voters (KIP-853) in its header batch.
    `voters` is None for a static quorum: the controllers' configuration names its voters.
    """

    leader_id: int | None = None
    kraft_version: int = 0
    voters: VotersRecord | None = None

    def after(self, message: object) -> QuorumState:
        """The state after the control record `message`; other records change nothing."""
        from kraftlake.records.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord

        match message:
            case LeaderChangeMessage():
                return attrs.evolve(self, leader_id=message.leader_id)
            case KRaftVersionRecord():
                return attrs.evolve(self, kraft_version=message.k_raft_version)
            case VotersRecord():
                return attrs.evolve(self, voters=message)
            case _:
                return self
