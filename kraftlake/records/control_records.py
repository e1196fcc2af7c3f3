"""The control record types of a KRaft log and its snapshots, each declared once.

A control record's wire version is its own `version` field. Source: the schemas of the same names in the kafka-clients
jar and org.apache.kafka.common.record.ControlRecordType.
"""

from __future__ import annotations

import attrs

from kraftlake.records.schema import Message, Names, Primitive, Struct, Versions, array, message_types, scalar, struct
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LeaderChangeVoter(Struct):
    """A voter in a LeaderChangeMessage."""

    voter_id: int = scalar(Primitive.INT32)
    voter_directory_id: Uuid = scalar(Primitive.UUID, versions="1+")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LeaderChangeMessage(Message):
    """The first record of a leader's epoch: the leader, the voters, and the voters that voted for it."""

    API_KEY = 2
    VERSIONS = Versions.parse("0-1")

    version: int = scalar(Primitive.INT16)
    leader_id: int = scalar(Primitive.INT32)
    voters: tuple[LeaderChangeVoter, ...] = array(LeaderChangeVoter)
    granting_voters: tuple[LeaderChangeVoter, ...] = array(LeaderChangeVoter)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SnapshotHeaderRecord(Message):
    """The first record of a snapshot: the append time of the last record that it contains, in epoch milliseconds."""

    API_KEY = 3
    VERSIONS = Versions.parse("0")

    version: int = scalar(Primitive.INT16)
    last_contained_log_timestamp: int = scalar(Primitive.INT64)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SnapshotFooterRecord(Message):
    """The last record of a snapshot; one without it is unfinished."""

    API_KEY = 4
    VERSIONS = Versions.parse("0")

    version: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class KRaftVersionRecord(Message):
    """The finalized kraft.version."""

    API_KEY = 5
    VERSIONS = Versions.parse("0")

    version: int = scalar(Primitive.INT16)
    k_raft_version: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class VoterEndpoint(Struct):
    """A listener of a voter."""

    name: str = scalar(Primitive.STRING, names=Names.KAFKA)
    host: str = scalar(Primitive.STRING, names=Names.HOST)
    port: int = scalar(Primitive.UINT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class KRaftVersionFeature(Struct):
    """The kraft.version levels that a voter supports."""

    min_supported_version: int = scalar(Primitive.INT16)
    max_supported_version: int = scalar(Primitive.INT16)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Voter(Struct):
    """A voter of a dynamic quorum (KIP-853)."""

    voter_id: int = scalar(Primitive.INT32)
    voter_directory_id: Uuid = scalar(Primitive.UUID)
    endpoints: tuple[VoterEndpoint, ...] = array(VoterEndpoint)
    k_raft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class VotersRecord(Message):
    """The voter set of a dynamic quorum (KIP-853)."""

    API_KEY = 6
    VERSIONS = Versions.parse("0")

    version: int = scalar(Primitive.INT16)
    voters: tuple[Voter, ...] = array(Voter)


CONTROL_RECORDS: dict[int, type[Message]] = message_types(vars().values())
"""Every control record type by its control type."""

CONTROL_NAMES: dict[int, str] = {
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
"""The names of control records in `kraftlake log`."""
