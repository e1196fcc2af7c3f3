"""The causes of records: the requests of clients that make them, or the nodes of the cluster themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from kraftlake.image.kafka_names import CONFIG_RESOURCES
from kraftlake.records import metadata_records as r
from kraftlake.records.control_records import KRaftVersionRecord, VotersRecord
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid

TOPIC, GROUP, CLUSTER = "TOPIC", "GROUP", "CLUSTER"


class Way(NamedTuple):
    """A request, and what its client needs: an operation on a type of resource. `*` is any operation."""

    request: str
    operation: str
    resource_type: str


@attrs.frozen(kw_only=True)
class Cause:
    """What can have made a record: `ways`, with the `name` of the resource, and nodes of the cluster by `nodes`.

    `nodes` is the end of a sentence on the part that nodes have in such records, empty where clients alone make them.
    """

    ways: tuple[Way, ...] = ()
    name: str | None = None
    nodes: str = ""

    @property
    def requests(self) -> tuple[str, ...]:
        """The names of the requests."""
        return tuple(dict.fromkeys(way.request for way in self.ways))


def _on_cluster(operation: str, *requests: str) -> tuple[Way, ...]:
    return tuple(Way(request, operation, CLUSTER) for request in requests)


_CREATE_TOPICS: Final = (Way("CreateTopics", "CREATE", TOPIC), Way("CreateTopics", "CREATE", CLUSTER))
_DELETE_TOPICS: Final = (Way("DeleteTopics", "DELETE", TOPIC), Way("DeleteTopics", "DELETE", CLUSTER))
_PARTITIONS: Final = (Way("CreatePartitions", "ALTER", TOPIC), *_CREATE_TOPICS)
_CONFIG_REQUESTS: Final = ("IncrementalAlterConfigs", "AlterConfigs")
_REASSIGN: Final = _on_cluster("ALTER", "AlterPartitionReassignments")
_ELECT: Final = _on_cluster("ALTER", "ElectLeaders", "UnregisterBroker")
_ELECTED: Final = "the controller elects leaders by itself, too"
_IN_SYNC: Final = "brokers report who is in sync, and the controller takes out those that are gone"
_REGISTERS: Final = "a broker registers itself"
_FENCES: Final = "the controller changes registrations by the brokers' heartbeats"
_TOKENS: Final = (
    Way("CreateDelegationToken", "CREATE_TOKENS", "USER"),
    *(Way(name, "*", "DELEGATION_TOKEN") for name in ("RenewDelegationToken", "ExpireDelegationToken")),
)
_OWN_TOKENS: Final = "a client needs no right for a token of its own, so its request leaves no line"

Names: TypeAlias = Mapping[Uuid, str]
_SAME_LEADER: Final = -2


def _config(message: r.ConfigRecord, _: Names) -> Cause:
    return _config_cause(CONFIG_RESOURCES.get(message.resource_type), message.resource_name)


def _config_cause(type_: str | None, name: str) -> Cause:
    if type_ in (TOPIC, GROUP):
        ways = tuple(Way(request, "ALTER_CONFIGS", type_) for request in _CONFIG_REQUESTS)
        return Cause(ways=(*ways, *(_CREATE_TOPICS if type_ == TOPIC else ())), name=name)
    return Cause(ways=_on_cluster("ALTER_CONFIGS", *_CONFIG_REQUESTS))


def _partition(message: r.PartitionRecord, names: Names) -> Cause:
    return Cause(ways=_PARTITIONS, name=names.get(message.topic_id))


def _partition_change(message: r.PartitionChangeRecord, _: Names) -> Cause:
    if message.adding_replicas or message.removing_replicas:
        return Cause(ways=_REASSIGN)
    if message.replicas is not None or message.adding_replicas is not None or message.removing_replicas is not None:
        return _REASSIGNED
    if message.leader != _SAME_LEADER:
        return _LED
    return Cause(nodes=_IN_SYNC)


def _clear_elr(message: r.ClearElrRecord, _: Names) -> Cause:
    if message.topic_name:
        ways = tuple(Way(request, "ALTER_CONFIGS", TOPIC) for request in _CONFIG_REQUESTS)
        return Cause(ways=ways, name=message.topic_name)
    return Cause(ways=(*_on_cluster("ALTER_CONFIGS", *_CONFIG_REQUESTS), *_on_cluster("ALTER", "UpdateFeatures")))


_OF: Final[dict[type[Message], Callable[[Any, Names], Cause]]] = {
    r.TopicRecord: lambda m, _: Cause(ways=_CREATE_TOPICS, name=m.name),
    r.RemoveTopicRecord: lambda m, names: Cause(ways=_DELETE_TOPICS, name=names.get(m.topic_id)),
    r.ConfigRecord: _config,
    r.PartitionRecord: _partition,
    r.PartitionChangeRecord: _partition_change,
    r.ClearElrRecord: _clear_elr,
}
_FIXED: Final[dict[type[Message], Cause]] = {
    r.AccessControlEntryRecord: Cause(ways=_on_cluster("ALTER", "CreateAcls")),
    r.RemoveAccessControlEntryRecord: Cause(ways=_on_cluster("ALTER", "DeleteAcls")),
    r.ClientQuotaRecord: Cause(ways=_on_cluster("ALTER_CONFIGS", "AlterClientQuotas")),
    r.UserScramCredentialRecord: Cause(ways=_on_cluster("ALTER", "AlterUserScramCredentials")),
    r.RemoveUserScramCredentialRecord: Cause(ways=_on_cluster("ALTER", "AlterUserScramCredentials")),
    r.FeatureLevelRecord: Cause(ways=_on_cluster("ALTER", "UpdateFeatures")),
    r.UnregisterBrokerRecord: Cause(ways=_on_cluster("ALTER", "UnregisterBroker")),
    r.DelegationTokenRecord: Cause(ways=_TOKENS, nodes=_OWN_TOKENS),
    r.RemoveDelegationTokenRecord: Cause(ways=_TOKENS, nodes=f"{_OWN_TOKENS}, and the controller removes expired ones"),
    r.RegisterBrokerRecord: Cause(nodes=_REGISTERS),
    r.RegisterControllerRecord: Cause(nodes="a controller registers itself"),
    r.BrokerRegistrationChangeRecord: Cause(nodes=_FENCES),
    r.FenceBrokerRecord: Cause(nodes=_FENCES),
    r.UnfenceBrokerRecord: Cause(nodes=_FENCES),
    r.ProducerIdsRecord: Cause(nodes="a broker takes a block of producer ids"),
}
_OF_CONTROL: Final = {
    KRaftVersionRecord.API_KEY: Cause(ways=_on_cluster("ALTER", "UpdateFeatures")),
    VotersRecord.API_KEY: Cause(
        ways=_on_cluster("ALTER", "AddRaftVoter", "RemoveRaftVoter"), nodes="a voter tells its own addresses by itself"
    ),
}
_REASSIGNED: Final = Cause(ways=_REASSIGN, nodes="a reassignment ends by itself once the new replicas are in sync")
_LED: Final = Cause(ways=_ELECT, nodes=_ELECTED)
_OTHER: Final = Cause(nodes="the controller writes such records by itself")

CLIENT_RECORDS: Final = tuple(
    record
    for record in (*_OF, *_FIXED)
    if record not in (r.PartitionRecord, r.PartitionChangeRecord) and (record in _OF or _FIXED[record].ways)
)
"""The types of the records that clients' requests make, but those of single partitions."""


_OF_EVENTS: Final = {
    "acl_added": _FIXED[r.AccessControlEntryRecord],
    "acl_removed": _FIXED[r.RemoveAccessControlEntryRecord],
    "quota_changed": _FIXED[r.ClientQuotaRecord],
    "scram_changed": _FIXED[r.UserScramCredentialRecord],
    "feature_changed": Cause(ways=_on_cluster("ALTER", "UpdateFeatures")),
    "broker_unregistered": _FIXED[r.UnregisterBrokerRecord],
    "delegation_token_changed": _FIXED[r.RemoveDelegationTokenRecord],
    "reassignment_started": Cause(ways=_REASSIGN),
    "reassignment_changed": Cause(ways=_REASSIGN),
    **dict.fromkeys(("reassignment_finished", "reassignment_cancelled", "replicas_changed"), _REASSIGNED),
    **dict.fromkeys(("leader_moved", "leader_lost", "leader_elected", "recovery_state_changed"), _LED),
    **dict.fromkeys(("isr_shrank", "isr_expanded", "isr_changed", "elr_changed"), Cause(nodes=_IN_SYNC)),
    "broker_registered": _FIXED[r.RegisterBrokerRecord],
    **dict.fromkeys(
        ("broker_fenced", "broker_unfenced", "broker_in_controlled_shutdown", "broker_changed"), Cause(nodes=_FENCES)
    ),
    **dict.fromkeys(("voter_added", "voter_removed", "voter_changed"), _OF_CONTROL[VotersRecord.API_KEY]),
}
"""The causes of the kinds of events, but those on a topic or a config: see `cause_of_event`."""

REQUESTS: Final = (
    *(way.request for cause in _OF_CONTROL.values() for way in cause.ways),
    *(way.request for way in (*_CREATE_TOPICS, *_DELETE_TOPICS, *_REASSIGN, *_ELECT, *_TOKENS)),
    *("CreatePartitions", *_CONFIG_REQUESTS),
    *(way.request for cause in _FIXED.values() for way in cause.ways),
)
"""The names of the requests that change metadata."""


def cause_of(message: object, names: Names) -> Cause:
    """The cause of a record; `names` are the names of topics by their ids."""
    of = _OF.get(type(message))  # type: ignore[arg-type]
    return _FIXED.get(type(message), _OTHER) if of is None else of(message, names)  # type: ignore[arg-type]


def cause_of_control(type_: int) -> Cause:
    """The cause of a control record of a type."""
    return _OF_CONTROL.get(type_, _OTHER)


def cause_of_event(kind: str, subject: str, topic: str | None) -> Cause:
    """The cause of an event of a kind, its subject in words, with the name of its topic."""
    match kind:
        case "topic_created":
            return Cause(ways=_CREATE_TOPICS, name=topic)
        case "topic_deleted":
            return Cause(ways=_DELETE_TOPICS, name=topic)
        case "partitions_added":
            return Cause(ways=_PARTITIONS, name=topic)
        case "config_changed":
            # a topic's own configs end with it
            type_, _, name = subject.partition(" ")
            cause = _config_cause(GROUP if type_ == "group" else TOPIC if topic is not None else None, topic or name)
            return attrs.evolve(cause, ways=(*cause.ways, *_DELETE_TOPICS)) if topic is not None else cause
    return _OF_EVENTS.get(kind, _OTHER)
