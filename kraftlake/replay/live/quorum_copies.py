"""The log copies of a live quorum's nodes, as its leader knows them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.node.meta_properties import MetaProperties
from kraftlake.kafka_files.node.quorum_state import ElectionState
from kraftlake.protocol.describe import ReplicaOfQuorum
from kraftlake.replay.comparing.log_copy import Fetching, LogCopy, read_copy
from kraftlake.replay.live.open_quorum import observer_of, open_quorum
from kraftlake.replay.reading.progress import Progress


def quorum_copies(
    addresses: str,
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> tuple[LogCopy, ...]:
    """A copy for each voter and observer. The fault of a node that has stopped fetching says so.

    A follower's log is the leader's up to the offset that it fetches. Raises as `open_quorum`.
    """
    log = open_quorum(addresses, cluster_id=cluster_id, command_config=command_config, progress=progress)
    ours = read_copy(LogCopy(path=addresses, properties=MetaProperties(cluster_id=log.cluster_id)), log)
    with observer_of(addresses, cluster_id=log.cluster_id, command_config=command_config) as observer:
        quorum = observer.describe()
    leader = quorum.leader
    ours = attrs.evolve(
        ours,
        quorum=attrs.evolve(ours.quorum, static_voters=tuple(sorted(replica.id for replica in quorum.voters))),
        election=ElectionState(leader_epoch=leader.epoch, leader_id=leader.id, voted_id=None),
    )
    now = max(replica.last_caught_up_timestamp for replica in quorum.voters)
    begin = _begin_of(leader.epoch, ours, log)
    return tuple(
        _copy(ours, replica, _fetching(replica, leads=replica.id == leader.id, now=now, begin=begin))
        for replica in sorted((*quorum.voters, *quorum.observers), key=lambda replica: replica.id)
    )


def _begin_of(epoch: int, ours: LogCopy, log: MetadataDirectory) -> tuple[int, int]:
    """The first offset of the leader's epoch that the log has, and its time; (−1, −1) where it has none yet."""
    earlier = max((end for of, end in ours.epoch_ends if of < epoch), default=0)
    first = next(log.batches(max(earlier, log.start_offset)), None)
    return (-1, -1) if first is None or first.epoch != epoch else (first.base_offset, first.timestamp)


def _fetching(replica: ReplicaOfQuorum, *, leads: bool, now: int, begin: tuple[int, int]) -> Fetching:
    has_fetched = replica.log_end_offset >= 0
    offset, since = (replica.log_end_offset, replica.last_fetch_timestamp) if has_fetched else begin
    return Fetching(leads=leads, now=now, since=since, since_offset=offset, caught_up=replica.last_caught_up_timestamp)


def _copy(ours: LogCopy, replica: ReplicaOfQuorum, fetching: Fetching) -> LogCopy:
    election = ours.election
    assert election is not None, "the leader answered"
    fault = None
    if fetching.is_silent:
        fault = f"it has not fetched for {fetching.silent_ms / 1000:.0f} s"
        if replica.log_end_offset < 0:
            fault = f"it has not fetched since {election.leader_id} leads"
    return attrs.evolve(
        ours,
        properties=attrs.evolve(ours.properties, node_id=replica.id, directory_id=replica.directory_id),
        epoch_ends=_cut(ours.epoch_ends, replica.log_end_offset, election.leader_epoch),
        fault=fault or ours.fault,
        fetching=fetching,
    )


def _cut(epoch_ends: Sequence[tuple[int, int]], end: int, leader_epoch: int) -> tuple[tuple[int, int], ...]:
    """The epochs of the leader's log, cut for a copy of it that ends at `end`."""
    begins = (0, *(end_ for _, end_ in epoch_ends))
    cut = [(epoch, min(end_, end)) for (epoch, end_), begin in zip(epoch_ends, begins, strict=False) if begin < end]
    if epoch_ends and epoch_ends[-1][1] < end:
        last = cut.pop()  # what came after the log was read, or is not committed yet
        cut += [(leader_epoch, end)] if last[0] == leader_epoch else [last, (leader_epoch, end)]
    return tuple(cut)
