"""The voters that a copy of a log names itself, and the role of a copy among a set of voters."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs

from kraftlake.image.cluster_image import ClusterImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.comparing.log_copy import LogCopy
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.replay_base import images_end
from kraftlake.runtime.errors import KraftlakeError


@attrs.frozen(kw_only=True)
class KnownVoter:
    """A member of the voter set; a static set (kraft.version 0) has no directory ids in the log.

    `endpoints` are those of the voters' record, or those that the controllers of a static quorum registered with.
    """

    id: int
    directory_id: Uuid | None = None
    endpoints: tuple[str, ...] = ()


class Role(enum.Enum):
    """The role of a copy in the quorum."""

    VOTER = "voter"
    OBSERVER = "observer"
    OTHER_DIRECTORY = "otherDirectory"
    """A copy whose node has a voter's id, but the voter has another directory: the copy has no vote."""
    UNKNOWN = "unknown"
    """A copy without a file beside the log that names its node."""


def role_among(voters: Sequence[KnownVoter], copy: LogCopy) -> Role:
    """The role of `copy` among a set of voters."""
    if copy.properties.node_id is None:
        return Role.UNKNOWN
    voter = next((voter for voter in voters if voter.id == copy.properties.node_id), None)
    if voter is None:
        return Role.OBSERVER
    same = (
        voter.directory_id is None
        or copy.properties.directory_id is None
        or voter.directory_id == copy.properties.directory_id
    )
    return Role.VOTER if same else Role.OTHER_DIRECTORY


def voters_of(copy: LogCopy) -> tuple[KnownVoter, ...]:
    """The voters at the end of a log: its newest voters record counts, committed or not; else those of its leader."""
    if copy.quorum.voters is None:
        static = copy.quorum.static_voters
        registered = _registered_endpoints(copy) if static else {}
        return tuple(KnownVoter(id=id_, endpoints=registered.get(id_, ())) for id_ in static)
    return tuple(
        KnownVoter(
            id=voter.voter_id,
            directory_id=voter.voter_directory_id,
            endpoints=tuple(f"{one.name}://{one.host}:{one.port}" for one in voter.endpoints),
        )
        for voter in sorted(copy.quorum.voters.voters, key=lambda voter: voter.voter_id)
    )


def cluster_of(copy: LogCopy) -> ClusterImage:
    """The brokers and controllers at the end of a log, or before its damage; none where it has no image there."""
    if copy.reader is None:
        return ClusterImage.EMPTY
    end = images_end(copy.reader) if copy.fault is None else copy.read_to
    try:
        return image_at(copy.reader, end - 1).image.cluster
    except KraftlakeError:
        return ClusterImage.EMPTY


def _registered_endpoints(copy: LogCopy) -> dict[int, tuple[str, ...]]:
    """The listeners of each registered controller at the end of a log."""
    return {
        id_: tuple(f"{name}://{at.host}:{at.port}" for name, at in sorted(registration.listeners.items()))
        for id_, registration in cluster_of(copy).controllers.items()
    }
