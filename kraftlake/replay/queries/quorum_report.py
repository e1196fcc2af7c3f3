"""The state of a quorum by the log copies of its nodes: its voters, the longest log, the electable voters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import attrs

from kraftlake.kafka_files.node.quorum_state import ElectionState
from kraftlake.records.uuid import Uuid
from kraftlake.replay.comparing.histories import History, histories_of
from kraftlake.replay.comparing.log_copy import LogCopy, read_log_copies
from kraftlake.replay.comparing.voters import KnownVoter, Role, role_among
from kraftlake.replay.reading.progress import Progress
from kraftlake.runtime.arguments import path_texts
from kraftlake.runtime.errors import UsageError


@attrs.frozen(kw_only=True)
class QuorumReport:
    """The copies in the order given, and the histories that they belong to.

    The voters, also the electable ones, are those of the first history. A log goes further than another by its last
    epoch, then by its end: only a candidate with a log at least as far gets a vote, also where the two are two
    histories. Source: org.apache.kafka.raft (KIP-595, KIP-853).
    """

    cluster_id: str | None
    copies: tuple[LogCopy, ...]
    histories: tuple[History, ...]

    @property
    def voters(self) -> tuple[KnownVoter, ...]:
        """The voters at the end of the first history."""
        return self.histories[0].voters

    @property
    def furthest(self) -> LogCopy:
        """The copy of the first history that goes furthest; a sound one where any of the copies has offsets."""
        return self.histories[0].furthest

    @property
    def rivals(self) -> tuple[History, ...]:
        """The other histories without those of deposed leaders: nothing shows which one is right."""
        return tuple(one for one in self.histories[1:] if not one.is_outvoted and not one.was_changed)

    @property
    def changed(self) -> tuple[History, ...]:
        """The logs that differ from the first history only in the middle."""
        return tuple(one for one in self.histories[1:] if one.was_changed)

    @property
    def running(self) -> ElectionState | None:
        """The leader of a running quorum and its epoch; None where files alone were read."""
        return next((copy.election for copy in self.copies if copy.fetching is not None), None)

    @property
    def fetching_voters(self) -> tuple[LogCopy, ...]:
        """The copies of the voters of a running quorum."""
        return tuple(copy for copy in self.copies if copy.fetching is not None and self.role_of(copy) is Role.VOTER)

    @property
    def needed(self) -> int:
        """The number of voters in a majority."""
        return len(self.voters) // 2 + 1

    def role_of(self, copy: LogCopy) -> Role:
        """The role of `copy` in the quorum."""
        return role_among(self.voters, copy)

    @property
    def voting(self) -> dict[int, LogCopy]:
        """The sound copies of voters by id, of two copies of one voter the further one."""
        found: dict[int, LogCopy] = {}
        for copy in self.copies:
            if self.role_of(copy) is Role.VOTER and copy.fault is None and copy.properties.node_id is not None:
                found[copy.properties.node_id] = max(
                    copy, found.get(copy.properties.node_id, copy), key=lambda one: one.position
                )
        return dict(sorted(found.items()))

    @property
    def electable(self) -> tuple[int, ...]:
        """The voters that can win a majority of all voters if every voter here runs."""
        here = self.voting
        positions = [copy.position for copy in here.values()]
        return tuple(
            id_ for id_, copy in here.items() if sum(other <= copy.position for other in positions) >= self.needed
        )

    @property
    def has_all_committed(self) -> bool:
        """Whether each majority has a voter with a copy here: then the furthest log has all committed records.

        With several histories, none is known to have the committed records. A log without an offset in common with the
        others does not count, and of logs that differ in the middle that of a majority counts.
        """
        if not self.voters or self.rivals or (self.changed and not self.histories[0].is_on_majority):
            return False
        placed = [copy for copy in self.voting.values() if self.history_of(copy) is not None]
        return len(placed) > len(self.voters) - self.needed

    @property
    def on_majority(self) -> int:
        """The highest offset of the furthest log that a majority of the voters has, −1 for none."""
        ends = sorted((self._end_shared_by(copy) for copy in self.voting.values()), reverse=True)
        return max(-1, ends[self.needed - 1] - 1) if len(ends) >= self.needed else -1

    def history_of(self, copy: LogCopy) -> History | None:
        """The history that a copy belongs to; None where it has no offset in common with any other."""
        return next((one for one in self.histories if any(copy is member for member in one.copies)), None)

    def diverges_from(self, copy: LogCopy) -> int | None:
        """The first offset of `copy` that differs from the furthest log; None for no difference."""
        history = self.history_of(copy)
        return None if history is None or history.comparison is None else history.comparison.parts_at

    def behind(self, copy: LogCopy) -> int | None:
        """The number of offsets of the furthest log that a copy lacks; None where it may be of another log."""
        return self.furthest.end_offset - copy.end_offset if self.history_of(copy) is self.histories[0] else None

    def _end_shared_by(self, copy: LogCopy) -> int:
        """The end of the part of the furthest log that a copy has."""
        if self.history_of(copy) is self.histories[0]:
            return copy.end_offset
        diverges = self.diverges_from(copy)
        return -1 if diverges is None else diverges

    def to_json(self) -> dict[str, Any]:
        """The report as `kraftlake quorum --json` prints it; a missing offset or id is null."""
        voting = self.voting
        return {
            "clusterId": self.cluster_id,
            "kraftVersion": self.furthest.quorum.kraft_version,
            "voters": [
                {
                    "id": voter.id,
                    "directoryId": _text(voter.directory_id),
                    "endpoints": list(voter.endpoints),
                    "here": voter.id in voting,
                }
                for voter in self.voters
            ],
            "needed": self.needed if self.voters else None,
            "electable": list(self.electable),
            "hasAllCommitted": self.has_all_committed,
            "onMajority": _offset(self.on_majority),
            "nodes": [self._copy_json(copy) for copy in self.copies],
            "histories": [history.to_json() for history in self.histories],
        }

    def _copy_json(self, copy: LogCopy) -> dict[str, Any]:
        election, history = copy.election, self.history_of(copy)
        return {
            "source": copy.path,
            "nodeId": copy.properties.node_id,
            "directoryId": _text(copy.properties.directory_id),
            "role": self.role_of(copy).value,
            "startOffset": copy.start_offset,
            "endOffset": copy.end_offset,
            "lastEpoch": copy.position[0] if copy.epoch_ends else None,
            "behind": self.behind(copy),
            "otherFrom": self.diverges_from(copy),
            "leaderEpoch": None if election is None else election.leader_epoch,
            "leaderId": None if election is None else election.leader_id,
            "votedId": None if election is None else election.voted_id,
            "fault": copy.fault,
            "history": None if history is None else self.histories.index(history),
        }


def describe_quorum(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> QuorumReport:
    """Read the copies at these paths, or at one, and compare them; a bundle stands for all copies in it.

    The addresses of a live quorum stand for all its voters and observers; `cluster_id`, which saves the request for the
    controllers' own, `command_config` and `progress` are for these.

    Raises UsageError for copies of several clusters, for no copies, and where a `cluster_id` or a `command_config` is
    given without addresses; NotASourceError for a path without a log.
    """
    from kraftlake.protocol.address import are_addresses

    if not sources:
        raise UsageError("Name the metadata directory of at least one node.")
    paths = path_texts([sources] if isinstance(sources, (str, os.PathLike)) else sources)
    given = {"--cluster-id": cluster_id, "--command-config": command_config}
    option = next((name for name, value in given.items() if value is not None), None)
    if option is not None and not any(map(are_addresses, paths)):
        raise UsageError(f"{', '.join(paths)}: {option} belongs to HOST:PORT of a quorum, and there is none.")
    copies: tuple[LogCopy, ...] = ()
    for path in paths:
        if are_addresses(path):
            from kraftlake.replay.live.quorum_copies import quorum_copies

            copies += quorum_copies(path, cluster_id=cluster_id, command_config=command_config, progress=progress)
        else:
            copies += read_log_copies(path)
    known = {copy.properties.cluster_id: copy.path for copy in copies if copy.properties.cluster_id is not None}
    if len(known) > 1:
        listed = ", ".join(f"{path} of {cluster_id}" for cluster_id, path in known.items())
        raise UsageError(f"These are logs of different clusters: {listed}.")
    return QuorumReport(cluster_id=next(iter(known), None), copies=copies, histories=histories_of(copies))


def _offset(offset: int) -> int | None:
    return offset if offset >= 0 else None


def _text(id_: Uuid | None) -> str | None:
    return None if id_ is None else str(id_)
