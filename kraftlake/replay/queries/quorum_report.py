"""The state of a quorum by the log copies of its nodes: its voters, the longest log, who can be elected."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from itertools import chain
from typing import Any

import attrs

from kraftlake.kafka_files.node.quorum_state import ElectionState
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.queries.log_copy import LogCopy, read_log_copies
from kraftlake.replay.reading.progress import Progress
from kraftlake.replay.reading.replay_base import images_end
from kraftlake.runtime.arguments import path_texts
from kraftlake.runtime.errors import KraftlakeError, UsageError


@attrs.frozen(kw_only=True)
class KnownVoter:
    """A member of the voter set; a static set (kraft.version 0) has no directory ids in the log.

    `endpoints` are those of the voters' record, or those that the controllers of a static quorum registered with.
    """

    id: int
    directory_id: Uuid | None = None
    endpoints: tuple[str, ...] = ()


class Role(enum.Enum):
    """What a copy is to the quorum."""

    VOTER = "voter"
    OBSERVER = "observer"
    OTHER_DIRECTORY = "otherDirectory"
    """Its node has a voter's id, but the voter has another directory: the copy has no vote."""
    UNKNOWN = "unknown"
    """No file beside the log names its node."""


@attrs.frozen(kw_only=True)
class QuorumReport:
    """The copies in the order given, beside the voter set that the furthest of them ends with.

    A log goes further than another by its last epoch, then by its end: only such a candidate gets a vote.
    Source: org.apache.kafka.raft (KIP-595, KIP-853).
    """

    cluster_id: str | None
    copies: tuple[LogCopy, ...]
    voters: tuple[KnownVoter, ...]

    @property
    def furthest(self) -> LogCopy:
        """The copy whose log goes furthest, of sound ones where there are any; the first of those that go as far."""
        sound = [copy for copy in self.copies if copy.fault is None]
        return max(sound or self.copies, key=lambda copy: copy.position)

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
        """How many voters make a majority."""
        return len(self.voters) // 2 + 1

    def role_of(self, copy: LogCopy) -> Role:
        """What `copy` is to the quorum."""
        if copy.properties.node_id is None:
            return Role.UNKNOWN
        voter = next((voter for voter in self.voters if voter.id == copy.properties.node_id), None)
        if voter is None:
            return Role.OBSERVER
        same = (
            voter.directory_id is None
            or copy.properties.directory_id is None
            or voter.directory_id == copy.properties.directory_id
        )
        return Role.VOTER if same else Role.OTHER_DIRECTORY

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
        """Whether a voter that is here is in each majority: then the furthest log holds all that was committed."""
        return bool(self.voters) and len(self.voting) > len(self.voters) - self.needed

    @property
    def on_majority(self) -> int:
        """The highest offset of the furthest log that a majority of the voters has, −1 for none."""
        furthest = self.furthest
        ends = sorted((copy.shared_with(furthest) for copy in self.voting.values()), reverse=True)
        return max(-1, ends[self.needed - 1] - 1) if len(ends) >= self.needed else -1

    def diverges_from(self, copy: LogCopy) -> int | None:
        """The first offset of `copy` that is not what the furthest log has: its node will cut it off. None for none."""
        furthest = self.furthest
        shared = copy.end_offset if copy is furthest else copy.shared_with(furthest)
        return shared if 0 <= shared < copy.end_offset else None

    def to_json(self) -> dict[str, Any]:
        """The report as `kraftlake quorum --json` prints it; an offset or id that there is none of is null."""
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
        }

    def _copy_json(self, copy: LogCopy) -> dict[str, Any]:
        furthest = self.furthest
        election = copy.election
        return {
            "source": copy.path,
            "nodeId": copy.properties.node_id,
            "directoryId": _text(copy.properties.directory_id),
            "role": self.role_of(copy).value,
            "startOffset": copy.start_offset,
            "endOffset": copy.end_offset,
            "lastEpoch": copy.position[0] if copy.epoch_ends else None,
            "behind": max(0, furthest.end_offset - copy.end_offset),
            "otherFrom": self.diverges_from(copy),
            "leaderEpoch": None if election is None else election.leader_epoch,
            "leaderId": None if election is None else election.leader_id,
            "votedId": None if election is None else election.voted_id,
            "fault": copy.fault,
        }


def describe_quorum(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    cluster_id: str | None = None,
    command_config: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> QuorumReport:
    """Read the copies at these paths, or at one, and hold them against each other: of a bundle all that it holds.

    The addresses of a live quorum stand for all its voters and observers; `cluster_id`, by which its controllers need
    not be asked for theirs, `command_config` and `progress` are for those.

    Raises UsageError where they are of several clusters, for none, and where a `cluster_id` or a `command_config` is
    given without addresses; NotASourceError where one is no log.
    """
    if not sources:
        raise UsageError("Name the metadata directory of at least one node.")
    paths = path_texts([sources] if isinstance(sources, (str, os.PathLike)) else sources)
    _check_options_of_quorum(paths, cluster_id, command_config)
    copies = tuple(chain.from_iterable(_copies_at(path, cluster_id, command_config, progress) for path in paths))
    known = {copy.properties.cluster_id: copy.path for copy in copies if copy.properties.cluster_id is not None}
    if len(known) > 1:
        told = ", ".join(f"{path} of {cluster_id}" for cluster_id, path in known.items())
        raise UsageError(f"These are logs of different clusters: {told}.")
    report = QuorumReport(cluster_id=next(iter(known), None), copies=copies, voters=())
    return attrs.evolve(report, voters=_voters_of(report.furthest))


def _check_options_of_quorum(
    paths: Sequence[str], cluster_id: str | None, command_config: str | os.PathLike[str] | None
) -> None:
    from kraftlake.protocol import are_addresses

    given = {"--cluster-id": cluster_id, "--command-config": command_config}
    option = next((name for name, value in given.items() if value is not None), None)
    if option is not None and not any(map(are_addresses, paths)):
        raise UsageError(f"{', '.join(paths)}: {option} belongs to HOST:PORT of a quorum, and there is none.")


def _copies_at(
    path: str, cluster_id: str | None, command_config: str | os.PathLike[str] | None, progress: Progress | None
) -> tuple[LogCopy, ...]:
    from kraftlake.protocol import are_addresses

    if not are_addresses(path):
        return read_log_copies(path)
    from kraftlake.replay.live.quorum_copies import quorum_copies

    return quorum_copies(path, cluster_id=cluster_id, command_config=command_config, progress=progress)


def _voters_of(copy: LogCopy) -> tuple[KnownVoter, ...]:
    """The voters at the end of a log: its newest voters record counts, committed or not; else those of its leader."""
    if copy.quorum.voters is None:
        registered = _registered_endpoints(copy) if copy.static_voters else {}
        return tuple(KnownVoter(id=id_, endpoints=registered.get(id_, ())) for id_ in copy.static_voters)
    return tuple(
        KnownVoter(
            id=voter.voter_id,
            directory_id=voter.voter_directory_id,
            endpoints=tuple(f"{one.name}://{one.host}:{one.port}" for one in voter.endpoints),
        )
        for voter in sorted(copy.quorum.voters.voters, key=lambda voter: voter.voter_id)
    )


def _registered_endpoints(copy: LogCopy) -> dict[int, tuple[str, ...]]:
    """The listeners of each registered controller at the end of a log; nothing where the log has no image there."""
    if copy.reader is None:
        return {}
    try:
        controllers = image_at(copy.reader, images_end(copy.reader) - 1).image.cluster.controllers
    except KraftlakeError:
        return {}
    return {
        id_: tuple(f"{name}://{at.host}:{at.port}" for name, at in sorted(registration.listeners.items()))
        for id_, registration in controllers.items()
    }


def _offset(offset: int) -> int | None:
    return offset if offset >= 0 else None


def _text(id_: Uuid | None) -> str | None:
    return None if id_ is None else str(id_)
