"""Configs: operations, what falls back on what, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.controller.config_schema import effective_topic_config
from kraftlake.controller.configs import ConfigOperation, OpType, incremental_alter_configs, legacy_alter_configs
from kraftlake.controller.errors import Errors
from kraftlake.image import ConfigResource
from kraftlake.records.metadata_records import ClearElrRecord, ConfigRecord
from kraftlake.records.metadata_version import from_feature_level
from tests.controller.cluster import ControlledCluster

ORDERS = ConfigResource(2, "orders")
CLUSTER = ConfigResource(4, "")
BROKER = ConfigResource(4, "1")


@pytest.fixture
def cluster() -> ControlledCluster:
    cluster = ControlledCluster(features={"eligible.leader.replicas.version": 0})
    cluster.start(1)
    cluster.assigned("orders", (1,))
    return cluster


def alter(cluster: ControlledCluster, resource: ConfigResource, **changes: Any) -> Errors:
    """`name_with_underscores=(operation, value)`."""
    operations = {name.replace("_", "."): ConfigOperation(*operation) for name, operation in changes.items()}
    return cluster.run(lambda state: incremental_alter_configs(state, {resource: operations}))[resource].error


def values(cluster: ControlledCluster, resource: ConfigResource) -> dict[str, str]:
    return dict(cluster.image.configs.config_map(resource).items())


def test_configs_are_set_and_deleted(cluster: ControlledCluster) -> None:
    assert alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000"), flush_ms=(OpType.SET, "5")) is Errors.NONE
    assert values(cluster, ORDERS) == {"retention.ms": "1000", "flush.ms": "5"}
    alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000"))
    assert cluster.added == [], "it has that value already"
    alter(cluster, ORDERS, flush_ms=(OpType.DELETE,))
    assert values(cluster, ORDERS) == {"retention.ms": "1000"}


def test_what_a_broker_has_is_written_again(cluster: ControlledCluster) -> None:
    for _ in range(2):
        alter(cluster, BROKER, log_retention_ms=(OpType.SET, "1000"))
        assert len(cluster.added) == 1


def test_lists_are_appended_to_from_their_default_and_subtracted_from(cluster: ControlledCluster) -> None:
    assert alter(cluster, ORDERS, cleanup_policy=(OpType.APPEND, "compact")) is Errors.NONE
    assert values(cluster, ORDERS) == {"cleanup.policy": "delete,compact"}
    alter(cluster, ORDERS, cleanup_policy=(OpType.SUBTRACT, "delete"))
    assert values(cluster, ORDERS) == {"cleanup.policy": "compact"}
    assert alter(cluster, ORDERS, retention_ms=(OpType.APPEND, "1")) is Errors.INVALID_CONFIG


def test_a_topic_falls_back_on_the_controller_the_cluster_the_file_and_the_default() -> None:
    cluster = ControlledCluster(static_configs={"log.retention.hours": "2", "log.segment.bytes": "2097152"})
    cluster.start(1)
    cluster.assigned("orders", (1,))

    def effective(name: str) -> str | None:
        return effective_topic_config(cluster.image.configs, cluster.config, "orders", name)

    assert effective("retention.ms") == "7200000"
    alter(cluster, CLUSTER, log_retention_ms=(OpType.SET, "50"))
    assert effective("retention.ms") == "50"
    alter(cluster, ConfigResource(4, "100"), log_retention_ms=(OpType.SET, "40"))
    assert effective("retention.ms") == "40", "node 100 is the controller itself"
    alter(cluster, ORDERS, retention_ms=(OpType.SET, "30"))
    assert (effective("retention.ms"), effective("segment.bytes")) == ("30", "2097152")
    assert (effective("flush.ms"), effective("no.such.config")) == ("9223372036854775807", None)


@pytest.mark.parametrize(
    ("resource", "name", "value", "error"),
    [
        (ORDERS, "retention.ms", "soon", Errors.INVALID_CONFIG),
        (ORDERS, "retention.ms", "-2", Errors.INVALID_CONFIG),
        (ORDERS, "segment.bytes", "2147483648", Errors.INVALID_CONFIG),
        (ORDERS, "preallocate", "maybe", Errors.INVALID_CONFIG),
        (ORDERS, "preallocate", "TRUE", Errors.NONE),
        (ORDERS, "compression.type", "rar", Errors.INVALID_CONFIG),
        (ORDERS, "compression.gzip.level", "-1", Errors.NONE),
        (ORDERS, "compression.gzip.level", "0", Errors.INVALID_CONFIG),
        (ORDERS, "cleanup.policy", "delete,delete", Errors.INVALID_CONFIG),
        (ORDERS, "min.cleanable.dirty.ratio", "1.5", Errors.INVALID_CONFIG),
        (ORDERS, "leader.replication.throttled.replicas", "0:1,1:2", Errors.NONE),
        (ORDERS, "leader.replication.throttled.replicas", "0-1", Errors.INVALID_CONFIG),
        (ORDERS, "remote.storage.enable", "true", Errors.INVALID_CONFIG),
        (ORDERS, "no.such.config", "1", Errors.INVALID_CONFIG),
        (ORDERS, "retention.ms", "1" * 40_000, Errors.INVALID_CONFIG),
        (ConfigResource(2, "nobody"), "retention.ms", "1", Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResource(2, ""), "retention.ms", "1", Errors.INVALID_REQUEST),
        (ConfigResource(2, "a b"), "retention.ms", "1", Errors.INVALID_TOPIC_EXCEPTION),
        (BROKER, "anything.goes", "here", Errors.NONE),
        (ConfigResource(4, "9"), "log.retention.ms", "1", Errors.BROKER_ID_NOT_REGISTERED),
        (ConfigResource(4, "x"), "log.retention.ms", "1", Errors.INVALID_REQUEST),
        (ConfigResource(8, "1"), "any", "1", Errors.INVALID_REQUEST),
        (ConfigResource(16, "mine"), "interval.ms", "1000", Errors.NONE),
        (ConfigResource(16, "mine"), "interval.ms", "1", Errors.INVALID_REQUEST),
        (ConfigResource(16, ""), "interval.ms", "1000", Errors.INVALID_REQUEST),
        (ConfigResource(32, "g"), "consumer.session.timeout.ms", "45000", Errors.NONE),
        (ConfigResource(32, "g"), "no.such.config", "1", Errors.INVALID_CONFIG),
        (ConfigResource(32, ""), "consumer.session.timeout.ms", "45000", Errors.INVALID_REQUEST),
    ],
)
def test_values_and_resources_are_checked(
    cluster: ControlledCluster, resource: ConfigResource, name: str, value: str, error: Errors
) -> None:
    assert alter(cluster, resource, **{name.replace(".", "_"): (OpType.SET, value)}) is error
    assert bool(cluster.added) is (error is Errors.NONE)


def test_legacy_changes_delete_what_they_do_not_name(cluster: ControlledCluster) -> None:
    alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000"), flush_ms=(OpType.SET, "5"))
    answers = cluster.run(lambda state: legacy_alter_configs(state, {ORDERS: {"flush.ms": "6"}}))
    assert answers[ORDERS].error is Errors.NONE
    assert values(cluster, ORDERS) == {"flush.ms": "6"}
    assert cluster.added[-1] == ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None)


def test_validating_changes_nothing(cluster: ControlledCluster) -> None:
    change = {ORDERS: {"retention.ms": ConfigOperation(OpType.SET, "1")}}
    cluster.run(lambda state: incremental_alter_configs(state, change, validate_only=True))
    assert cluster.added == []


def test_with_elr_the_minimum_is_the_clusters_or_a_topics_and_clears_what_was_eligible() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    cluster.assigned("orders", (1,))
    two = {"min_insync_replicas": (OpType.SET, "2")}
    assert alter(cluster, BROKER, **two) is Errors.INVALID_CONFIG
    assert alter(cluster, CLUSTER, min_insync_replicas=(OpType.DELETE,)) is Errors.INVALID_CONFIG
    assert alter(cluster, CLUSTER, **two) is Errors.NONE
    assert cluster.added[-1] == ClearElrRecord(topic_name="")
    assert alter(cluster, ORDERS, **two) is Errors.NONE
    assert cluster.added[-1] == ClearElrRecord(topic_name="orders")


def test_directories_are_cordoned_through_a_broker_only() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    change = {BROKER: {"cordoned.log.dirs": ConfigOperation(OpType.SET, "/data")}}
    answers = cluster.run(lambda state: incremental_alter_configs(state, change, forwarded=False))
    assert answers[BROKER].error is Errors.INVALID_CONFIG
    assert alter(cluster, BROKER, cordoned_log_dirs=(OpType.SET, "/data")) is Errors.NONE
    old = ControlledCluster(version=from_feature_level(29))
    old.start(1)
    assert alter(old, BROKER, cordoned_log_dirs=(OpType.SET, "/data")) is Errors.INVALID_CONFIG
