"""Each API, asked by a client that has no right to it.

What no ACL is about is everybody's (`allow.everyone.if.no.acl.found`), so that other cases are not concerned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.server.controller.wire_requests import principal
from tests.server.matrix.access_cases import ACL, ACL_FILTER, quota_entry
from tests.server.matrix.records import NEW_PRODUCER, await_producer_ids, fetched, good, produced
from tests.server.matrix.sides import BROKERS, CONTROLLER, SUPER_USER, Side, Sides

_TOPIC, _CLUSTER, _BROKER = 2, 4, 4
_LITERAL, _PREFIXED, _ALLOW = 3, 4, 3
_ALL, _READ, _WRITE, _DESCRIBE, _CLUSTER_ACTION = 2, 3, 4, 8, 9
_US = "User:ANONYMOUS"
_ACLS = (
    (_TOPIC, "denied", _PREFIXED, "User:alice", _ALL),
    (_TOPIC, "denied-seen", _LITERAL, _US, _DESCRIBE),
    (_TOPIC, "denied-read", _LITERAL, _US, _READ),
    (_TOPIC, "denied-written", _LITERAL, _US, _WRITE),
    (_CLUSTER, "kafka-cluster", _LITERAL, _US, _CLUSTER_ACTION),  # which brokers need, who are ANONYMOUS, too
)
"""Kind, name and pattern of the resource, principal, operation."""
_TOPICS = ("denied", "denied-seen", "denied-read", "denied-written", "free")


def denied(sides: Sides, side: Side) -> None:
    """What is asked of topics, of the cluster and of brokers."""
    for topic in _TOPICS:
        side.create(topic, [1, 2], [1, 3])
    await_producer_ids(side)
    with _acls(side):
        for api, cases in (_of_topics(side) | _of_the_cluster(side)).items():
            for version in sides.versions(api):
                for label, values in cases.items():
                    side.call(label, api, version, **values)


def _of_topics(side: Side) -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """What is asked, by API and label: all topics in one request, and one that there is none of."""
    names = (*_TOPICS, "denied-none")
    known = {name: side.id_of(name) for name in _TOPICS}
    ids = [{"name": None, "topic_id": id_} for id_ in known.values()]
    by_name = [{"name": name, "topic_id": None} for name in names]
    new = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    config = {"name": "retention.ms", "config_operation": 0, "value": "7000"}
    resources = [
        *({"resource_type": _TOPIC, "resource_name": name, "configs": [config]} for name in names),
        {"resource_type": _BROKER, "resource_name": "1", "configs": []},
    ]
    operations = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    place = {"partition": 0, "fetch_offset": 0}

    def of_each(field: str, **values: Any) -> list[dict[str, Any]]:
        return [{"name": name, "topic": name, field: [values]} for name in names]

    return {
        "metadata": {"topics": {"topics": by_name, **operations}},
        "describe_topic_partitions": {"topics": {"topics": by_name, "response_partition_limit": 99}},
        "produce": {
            name: produced(side, name, (0, good())) for name in _TOPICS
        } | {"transaction": produced(side, "free", (0, good()), transactional_id="t")},
        "fetch": {
            "all": fetched(side, *((name, [place]) for name in _TOPICS)),
            "of replica 9": fetched(
                side, *((name, [place]) for name in _TOPICS), replica_id=9, replica_state={"replica_id": 9}
            ),
        },
        "list_offsets": {
            "all": {
                "topics": of_each("partitions", partition_index=0, timestamp=-1, current_leader_epoch=-1),
                "replica_id": -1,
            }
        },
        "offset_for_leader_epoch": {
            "all": {
                "topics": of_each("partitions", partition=0, leader_epoch=0, current_leader_epoch=-1),
                "replica_id": -1,
            }
        },
        "delete_records": {"all": {"topics": of_each("partitions", partition_index=0, offset=0), "timeout": 10_000}},
        "describe_configs": {
            "all": {
                "resources": [
                    {**one, "configuration_keys": ("retention.ms", "log.cleaner.threads")} for one in resources
                ]
            }
        },
        "incremental_alter_configs": {"all": {"resources": resources, "validate_only": True}},
        "alter_configs": {"all": {"resources": resources, "validate_only": True}},
        "create_topics": {
            "topics": {
                "topics": [{"name": name, **new} for name in ("denied-new", "free-new")], "timeout": 30_000,
                "validate_only": True,
            }
        },
        "create_partitions": {
            "all": {
                "topics": [{"name": name, "count": 3, "assignments": None} for name in names], "timeout": 30_000,
                "validate_only": True,
            }
        },
        "delete_topics": {
            "all but one": {
                "topics": [*by_name[:4], *ids[:4], by_name[-1]], "topic_names": [*names[:4], "denied-none"],
                "timeout": 30_000,
            }
        },
    }  # fmt: skip


def _of_the_cluster(side: Side) -> Mapping[str, Mapping[str, dict[str, Any]]]:
    """What needs a right to the cluster, also where a topic is meant."""
    moved = [{"name": name, "partitions": [{"partition_index": 0, "replicas": (1, 2)}]} for name in _TOPICS]
    elected = [{"topic": name, "partitions": (0,)} for name in _TOPICS]
    quorum = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    return {
        "alter_partition_reassignments": {"all": {"topics": moved, "timeout": 30_000}},
        "list_partition_reassignments": {"all": {"topics": None, "timeout": 30_000}},
        "elect_leaders": {"all": {"topic_partitions": elected, "election_type": 0, "timeout": 30_000}},
        "describe_quorum": {"all": {"topics": quorum}},
        "describe_cluster": {
            "all": {"endpoint_type": 1, "include_cluster_authorized_operations": True},
            "controllers": {"endpoint_type": 2},
        },
        "describe_log_dirs": {"all": {"topics": [{"topic": name, "partitions": (0,)} for name in _TOPICS]}},
        "init_producer_id": {"idempotent": NEW_PRODUCER},
        "unregister_broker": {"9": {"broker_id": 9}},
        "list_config_resources": {"all": {"resource_types": ()}},
        "describe_acls": {"all": ACL_FILTER},
        "create_acls": {"two": {"creations": [ACL, ACL]}},
        "delete_acls": {"two": {"filters": [ACL_FILTER, ACL_FILTER]}},
        "describe_client_quotas": {"all": {"components": [], "strict": False}},
        "alter_client_quotas": {"two": {"entries": [quota_entry([("user", "a")], [("bytes", 1.0)])] * 2}},
        "describe_user_scram_credentials": {"all": {"users": []}, "one": {"users": [{"name": "a"}]}},
        "alter_user_scram_credentials": {
            "of two": {
                "deletions": [{"name": name, "mechanism": 1} for name in ("bob", "alice")],
                "upsertions": [
                    {"name": "bob", "mechanism": 2, "iterations": 4096, "salt": b"s", "salted_password": b"p"}
                ],
            }
        },
        "update_features": {
            "one": {"feature_updates": [{"feature": "group.version", "max_version_level": 1}], "timeout": 30_000}
        },
    }  # fmt: skip


@contextmanager
def _acls(side: Side) -> Iterator[None]:
    """The ACLs, from when all nodes know them until none does."""
    creations = [
        {
            "resource_type": kind, "resource_name": name, "resource_pattern_type": pattern, "principal": user,
            "host": "*", "operation": operation, "permission_type": _ALLOW,
        }
        for kind, name, pattern, user, operation in _ACLS
    ]  # fmt: skip
    _as_super_user(side, "create_acls", creations=creations)
    try:
        _await_denied(side, denied=True)
        yield
    finally:
        _as_super_user(side, "delete_acls", filters=[ACL_FILTER])
        _await_denied(side, denied=False)


def _as_super_user(side: Side, api: str, **values: Any) -> None:
    """Ask the controller as a broker that passes the request of a super user on."""
    answer = side.ask(
        "envelope", 0, CONTROLLER, request_data=side.frame(api, 3, values), request_principal=principal(SUPER_USER),
        client_host_address=bytes([127, 0, 0, 1]),
    )  # fmt: skip
    assert not answer.error_code, answer


def _await_denied(side: Side, *, denied: bool) -> None:
    quorum = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]

    def is_known(node: int) -> bool:
        if node == CONTROLLER:
            answer = side.ask("describe_quorum", 0, node, topics=quorum)
        else:
            (answer,) = side.ask("metadata", 12, node, topics=[{"name": "denied", "topic_id": None}]).topics
        return bool(answer.error_code) is denied

    for node in (*BROKERS, CONTROLLER):
        side.wait_for(lambda node=node: is_known(node), f"node {node} to know the ACLs")


CASES = (denied,)
