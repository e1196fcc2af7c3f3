"""The log copies of a live quorum's nodes, as its leader knows them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import attrs

from kraftlake.kafka_files import MetadataDirectory
from kraftlake.kafka_files.node.meta_properties import MetaProperties
from kraftlake.kafka_files.node.quorum_state import ElectionState
from kraftlake.protocol import ReplicaOfQuorum
from kraftlake.replay.live.open_quorum import observer_of, open_quorum
from kraftlake.replay.queries.log_copy import LogCopy, read_copy

_SILENT_MS: Final = 10_000
"""A follower fetches twice a second or more; after two seconds without an answer it gives its leader up."""


def quorum_copies(addresses: str, command_config: str | os.PathLike[str] | None = None) -> tuple[LogCopy, ...]:
    """A copy for each voter and observer. A node that has stopped fetching has that as its fault.

    A follower's log is the leader's up to the offset that it fetches. Raises as `open_quorum`.
    """
    log = open_quorum(addresses, command_config=command_config)
    ours = read_copy(LogCopy(path=addresses), log)
    with observer_of(addresses, cluster_id=log.cluster_id, command_config=command_config) as observer:
        quorum = observer.describe()
    ours = attrs.evolve(ours, static_voters=tuple(sorted(replica.id for replica in quorum.voters)))
    now = max(replica.last_caught_up_timestamp for replica in quorum.voters)
    election = ElectionState(leader_epoch=quorum.leader.epoch, leader_id=quorum.leader.id, voted_id=None)
    return tuple(
        _copy(ours, replica, election, log, now, leads=replica.id == quorum.leader.id)
        for replica in sorted((*quorum.voters, *quorum.observers), key=lambda replica: replica.id)
    )


def _copy(
    ours: LogCopy, replica: ReplicaOfQuorum, election: ElectionState, log: MetadataDirectory, now: int, *, leads: bool
) -> LogCopy:
    silent_ms = 0 if leads else now - replica.last_fetch_timestamp
    fault = None
    if replica.log_end_offset < 0:
        fault = f"it has not fetched since {election.leader_id} leads"
    elif silent_ms > _SILENT_MS:
        fault = f"it has not fetched for {silent_ms / 1000:.0f} s"
    return attrs.evolve(
        ours,
        properties=MetaProperties(cluster_id=log.cluster_id, node_id=replica.id, directory_id=replica.directory_id),
        election=election,
        epoch_ends=_cut(ours.epoch_ends, replica.log_end_offset, election.leader_epoch),
        fault=fault or ours.fault,
    )


def _cut(epoch_ends: Sequence[tuple[int, int]], end: int, leader_epoch: int) -> tuple[tuple[int, int], ...]:
    """The epochs of the leader's log as far as a copy of it goes that ends at `end`."""
    begins = (0, *(end_ for _, end_ in epoch_ends))
    cut = [(epoch, min(end_, end)) for (epoch, end_), begin in zip(epoch_ends, begins, strict=False) if begin < end]
    if epoch_ends and epoch_ends[-1][1] < end:
        last = cut.pop()  # what came after the log was read, or is not committed yet
        cut += [(leader_epoch, end)] if last[0] == leader_epoch else [last, (leader_epoch, end)]
    return tuple(cut)
