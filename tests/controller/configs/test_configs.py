"""Configs: operations, effective values, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.controller.configs.alter_configs import (
    ConfigOperation,
    OpType,
    incremental_alter_configs,
    legacy_alter_configs,
)
from kraftlake.controller.configs.config_schema import effective_topic_config
from kraftlake.controller.result import ControllerResult
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ClearElrRecord, ConfigRecord
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion
from tests.controller.controlled_cluster import ControlledCluster

ORDERS = ConfigResource(2, "orders")
CLUSTER = ConfigResource(4, "")
BROKER = ConfigResource(4, "1")


@pytest.fixture
def cluster() -> ControlledCluster:
    cluster = ControlledCluster(features={"eligible.leader.replicas.version": 0})
    cluster.start(1)
    cluster.assigned("orders", (1,))
    return cluster


def alter(cluster: ControlledCluster, resource: ConfigResource, **changes: Any) -> ErrorCode:
    """`name_with_underscores=(operation, value)`."""
    operations = {name.replace("_", "."): ConfigOperation(*operation) for name, operation in changes.items()}
    return cluster.run(lambda state: incremental_alter_configs(state, {resource: operations}))[resource].error


def values(cluster: ControlledCluster, resource: ConfigResource) -> dict[str, str]:
    return dict(cluster.image.configs.config_map(resource).items())


def test_configs_are_set_and_deleted(cluster: ControlledCluster) -> None:
    assert alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000"), flush_ms=(OpType.SET, "5")) is ErrorCode.NONE
    assert values(cluster, ORDERS) == {"retention.ms": "1000", "flush.ms": "5"}
    alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000"))
    assert cluster.added == [], "it has that value already"
    alter(cluster, ORDERS, flush_ms=(OpType.DELETE,))
    assert values(cluster, ORDERS) == {"retention.ms": "1000"}


def test_an_unchanged_config_of_a_broker_is_written_again(cluster: ControlledCluster) -> None:
    for _ in range(2):
        alter(cluster, BROKER, log_retention_ms=(OpType.SET, "1000"))
        assert len(cluster.added) == 1


def test_lists_are_appended_to_from_their_default_and_subtracted_from(cluster: ControlledCluster) -> None:
    assert alter(cluster, ORDERS, cleanup_policy=(OpType.APPEND, "compact")) is ErrorCode.NONE
    assert values(cluster, ORDERS) == {"cleanup.policy": "delete,compact"}
    alter(cluster, ORDERS, cleanup_policy=(OpType.SUBTRACT, "delete"))
    assert values(cluster, ORDERS) == {"cleanup.policy": "compact"}
    assert alter(cluster, ORDERS, retention_ms=(OpType.APPEND, "1")) is ErrorCode.INVALID_CONFIG


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
        (ORDERS, "retention.ms", "soon", ErrorCode.INVALID_CONFIG),
        (ORDERS, "retention.ms", "-2", ErrorCode.INVALID_CONFIG),
        (ORDERS, "segment.bytes", "2147483648", ErrorCode.INVALID_CONFIG),
        (ORDERS, "preallocate", "maybe", ErrorCode.INVALID_CONFIG),
        (ORDERS, "preallocate", "TRUE", ErrorCode.NONE),
        (ORDERS, "compression.type", "rar", ErrorCode.INVALID_CONFIG),
        (ORDERS, "compression.gzip.level", "-1", ErrorCode.NONE),
        (ORDERS, "compression.gzip.level", "0", ErrorCode.INVALID_CONFIG),
        (ORDERS, "min.cleanable.dirty.ratio", "1.5", ErrorCode.INVALID_CONFIG),
        (ORDERS, "leader.replication.throttled.replicas", "0:1,1:2", ErrorCode.NONE),
        (ORDERS, "leader.replication.throttled.replicas", "0-1", ErrorCode.INVALID_CONFIG),
        (ORDERS, "remote.storage.enable", "true", ErrorCode.INVALID_CONFIG),
        (ORDERS, "no.such.config", "1", ErrorCode.INVALID_CONFIG),
        (ORDERS, "retention.ms", "1" * 40_000, ErrorCode.INVALID_CONFIG),
        (ConfigResource(2, "nobody"), "retention.ms", "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResource(2, ""), "retention.ms", "1", ErrorCode.INVALID_REQUEST),
        (ConfigResource(2, "a b"), "retention.ms", "1", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "anything.goes", "here", ErrorCode.NONE),
        (ConfigResource(4, "9"), "log.retention.ms", "1", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (ConfigResource(4, "x"), "log.retention.ms", "1", ErrorCode.INVALID_REQUEST),
        (ConfigResource(8, "1"), "any", "1", ErrorCode.INVALID_REQUEST),
        (ConfigResource(16, "mine"), "interval.ms", "1000", ErrorCode.NONE),
        (ConfigResource(16, "mine"), "interval.ms", "1", ErrorCode.INVALID_REQUEST),
        (ConfigResource(16, ""), "interval.ms", "1000", ErrorCode.INVALID_REQUEST),
        (ConfigResource(32, "g"), "consumer.session.timeout.ms", "45000", ErrorCode.NONE),
        (ConfigResource(32, "g"), "no.such.config", "1", ErrorCode.INVALID_CONFIG),
        (ConfigResource(32, ""), "consumer.session.timeout.ms", "45000", ErrorCode.INVALID_REQUEST),
    ],
)
def test_values_and_resources_are_checked(
    cluster: ControlledCluster, resource: ConfigResource, name: str, value: str, error: ErrorCode
) -> None:
    assert alter(cluster, resource, **{name.replace(".", "_"): (OpType.SET, value)}) is error
    assert bool(cluster.added) is (error is ErrorCode.NONE)


@pytest.mark.parametrize(
    "value", ["1_000", "nan", "1000\xa0", "\u20031000", "\U0001d7cf", "\u00b2", "--1", "1.0", "1e3"]
)
def test_a_number_that_only_python_reads_is_refused(cluster: ControlledCluster, value: str) -> None:
    assert alter(cluster, ORDERS, retention_ms=(OpType.SET, value)) is ErrorCode.INVALID_CONFIG
    assert cluster.added == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min.cleanable.dirty.ratio", "0.5f"),
        ("min.cleanable.dirty.ratio", "1D"),
        ("min.cleanable.dirty.ratio", "0x1p-1"),
        ("min.cleanable.dirty.ratio", "NaN"),
        ("retention.ms", "\x01 1000\x00\n"),
        ("retention.ms", "\u0661\uff10"),
        ("retention.ms", "+" + "0" * 5_000 + "7"),
        ("preallocate", "fal\u017fe"),
        ("compression.type", " lz4 "),
    ],
)
def test_a_value_that_only_java_parses_is_stored_unchanged(cluster: ControlledCluster, name: str, value: str) -> None:
    assert alter(cluster, ORDERS, **{name.replace(".", "_"): (OpType.SET, value)}) is ErrorCode.NONE
    assert values(cluster, ORDERS) == {name: value}


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("log.cleanup.policy", "delete"),
        ("group.consumer.assignors", "uniform,range"),
        ("group.coordinator.rebalance.protocols", "classic,consumer,streams"),
        ("group.share.assignors", "simple"),
        ("group.streams.assignors", "sticky"),
        ("listeners", "PLAINTEXT://:9092"),
        ("log.dir", "/tmp/kafka-logs"),
        ("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("sasl.kerberos.principal.to.local.rules", "DEFAULT"),
        ("ssl.enabled.protocols", "TLSv1.2,TLSv1.3"),
    ],
)
def test_a_list_of_a_broker_that_is_not_set_starts_with_its_default(
    cluster: ControlledCluster, name: str, default: str
) -> None:
    assert alter(cluster, CLUSTER, **{name.replace(".", "_"): (OpType.APPEND, "more")}) is ErrorCode.NONE
    assert values(cluster, CLUSTER)[name] == f"{default},more"
    alter(cluster, BROKER, **{name.replace(".", "_"): (OpType.SUBTRACT, default.split(",", maxsplit=1)[0])})
    assert values(cluster, BROKER)[name] == ",".join(default.split(",")[1:])


def test_a_list_of_a_topic_that_is_not_set_starts_with_its_default_not_with_that_of_the_cluster(
    cluster: ControlledCluster,
) -> None:
    alter(cluster, CLUSTER, log_cleanup_policy=(OpType.SET, "compact"))
    assert alter(cluster, ORDERS, cleanup_policy=(OpType.APPEND, "compact")) is ErrorCode.NONE
    assert values(cluster, ORDERS) == {"cleanup.policy": "delete,compact"}


def test_trailing_empty_strings_of_an_appended_value_are_ignored(cluster: ControlledCluster) -> None:
    assert alter(cluster, ORDERS, cleanup_policy=(OpType.APPEND, "compact,,")) is ErrorCode.NONE
    assert values(cluster, ORDERS) == {"cleanup.policy": "delete,compact"}
    assert alter(cluster, ORDERS, cleanup_policy=(OpType.SUBTRACT, "delete,")) is ErrorCode.NONE
    assert values(cluster, ORDERS) == {"cleanup.policy": "compact"}
    assert alter(cluster, ORDERS, cleanup_policy=(OpType.APPEND, ",delete")) is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", " delete , compact,delete "),
        ("leader.replication.throttled.replicas", "0:1,1:2,"),
        ("leader.replication.throttled.replicas", "*,"),
    ],
)
def test_lists_may_have_duplicates_and_throttled_replicas_empty_members(
    cluster: ControlledCluster, name: str, value: str
) -> None:
    assert alter(cluster, ORDERS, **{name.replace(".", "_"): (OpType.SET, value)}) is ErrorCode.NONE


def test_a_malformed_cluster_default_does_not_break_later_commands(cluster: ControlledCluster) -> None:
    alter(cluster, CLUSTER, log_cleaner_min_compaction_lag_ms=(OpType.SET, "soon"))
    assert alter(cluster, CLUSTER, log_retention_hours=(OpType.SET, "soon")) is ErrorCode.NONE
    assert alter(cluster, ORDERS, flush_ms=(OpType.SET, "5")) is ErrorCode.NONE
    created = cluster.create("bills", assignments=[(0, (1,))])
    assert (created.error.error, created.configs["retention.ms"]) == (ErrorCode.NONE, "0"), (
        "as Kafka's conversion has it"
    )


def test_a_malformed_min_isr_of_the_cluster_is_skipped(cluster: ControlledCluster) -> None:
    cluster.start(2)
    cluster.assigned("pair", (1, 2), configs={"min.insync.replicas": " 2 "})
    cluster.assigned("plain", (1, 2))
    assert alter(cluster, CLUSTER, min_insync_replicas=(OpType.SET, "two")) is ErrorCode.NONE
    assert [cluster.state.effective_min_isr(cluster.state.topic(name)) for name in ("pair", "plain")] == [2, 1]
    cluster.heartbeat(2, want_fence=True)
    assert cluster.partition("pair").isr == (1,)


def test_the_compaction_lag_of_a_topic_is_compared_with_the_property_file_not_with_the_cluster() -> None:
    cluster = ControlledCluster(static_configs={"log.cleaner.min.compaction.lag.ms": "100"})
    cluster.start(1)
    cluster.assigned("orders", (1,))
    alter(cluster, CLUSTER, log_cleaner_min_compaction_lag_ms=(OpType.SET, "5000"))
    assert alter(cluster, ORDERS, max_compaction_lag_ms=(OpType.SET, "200")) is ErrorCode.NONE
    assert alter(cluster, ORDERS, max_compaction_lag_ms=(OpType.SET, "99")) is ErrorCode.INVALID_CONFIG


def test_the_error_names_a_malformed_value_of_the_property_file() -> None:
    cluster = ControlledCluster(static_configs={"log.cleaner.min.compaction.lag.ms": "soon"})
    cluster.start(1)
    answer = cluster.create("orders", assignments=[(0, (1,))], configs={"retention.ms": "1"}).error
    assert answer.error is ErrorCode.INVALID_CONFIG
    assert answer.message == (
        "The controller's static_configs give min.compaction.lag.ms a malformed value: it is no whole number."
    )


def test_configs_that_kafka_has_removed_count_as_not_set(cluster: ControlledCluster) -> None:
    old = ConfigRecord(resource_type=2, resource_name="orders", name="message.format.version", value="2.8")
    cluster.run(lambda state: ControllerResult([ApiMessageAndVersion(old, 0)], None))
    assert alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000")) is ErrorCode.NONE
    cluster.run(lambda state: legacy_alter_configs(state, {ORDERS: {"flush.ms": "6"}}))
    assert [message.name for message in cluster.added] == ["flush.ms", "retention.ms"]


def test_remote_storage_of_a_topic_is_turned_off_only_with_its_data(cluster: ControlledCluster) -> None:
    enabled = ConfigRecord(resource_type=2, resource_name="orders", name="remote.storage.enable", value="true")
    cluster.run(lambda state: ControllerResult([ApiMessageAndVersion(enabled, 0)], None))
    off = {"remote_storage_enable": (OpType.SET, "false")}
    assert alter(cluster, ORDERS, **off) is ErrorCode.INVALID_CONFIG
    assert alter(cluster, ORDERS, **off, remote_log_delete_on_disable=(OpType.SET, "true")) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumer.session.timeout.ms", "1000"),
        ("consumer.session.timeout.ms", "60001"),
        ("consumer.heartbeat.interval.ms", "4999"),
        ("consumer.assignment.interval.ms", "15001"),
        ("share.auto.offset.reset", "never"),
        ("share.auto.offset.reset", "by_duration:-PT1S"),
        ("share.delivery.count.limit", "11"),
        ("share.record.lock.duration.ms", "14999"),
        ("share.partition.max.record.locks", "4001"),
        ("streams.assignor.name", "nobody"),
        ("streams.num.standby.replicas", "3"),
        ("streams.num.warmup.replicas", "21"),
        ("streams.task.offset.interval.ms", "14999"),
        ("streams.rack.aware.assignment.tags", "zone,zone"),
        ("streams.rack.aware.assignment.tags", "zone,"),
        ("errors.deadletterqueue.topic.name", "__dead"),
    ],
)
def test_groups_have_the_bounds_of_the_brokers_settings(cluster: ControlledCluster, name: str, value: str) -> None:
    group = ConfigResource(32, "g")
    assert alter(cluster, group, **{name.replace(".", "_"): (OpType.SET, value)}) is ErrorCode.INVALID_CONFIG
    assert cluster.added == []


def test_a_groups_session_is_longer_than_its_heartbeats_and_bounds_come_from_the_property_file() -> None:
    bounds = {"group.consumer.min.session.timeout.ms": "5000", "group.consumer.heartbeat.interval.ms": "7000"}
    cluster = ControlledCluster(static_configs=bounds)
    group = ConfigResource(32, "g")
    assert alter(cluster, group, consumer_session_timeout_ms=(OpType.SET, "7000")) is ErrorCode.INVALID_CONFIG
    assert alter(cluster, group, consumer_session_timeout_ms=(OpType.SET, "7001")) is ErrorCode.NONE
    assert alter(cluster, group, consumer_heartbeat_interval_ms=(OpType.SET, "7001")) is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("interval.ms", "soon", ErrorCode.INVALID_CONFIG),
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", " 100 ", ErrorCode.NONE),
        ("metrics", "a,,b", ErrorCode.INVALID_CONFIG),
        ("metrics", "a,a", ErrorCode.NONE),
        ("match", "client_id", ErrorCode.INVALID_CONFIG),
        ("match", "nobody=a", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=[", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=a++", ErrorCode.NONE),
        ("match", "client_id=[a-z]+, client_software_version=3\\.5\\..*", ErrorCode.NONE),
        ("no.such.config", "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_subscriptions_of_client_metrics_are_checked(
    cluster: ControlledCluster, name: str, value: str, error: ErrorCode
) -> None:
    mine = ConfigResource(16, "mine")
    assert alter(cluster, mine, **{name.replace(".", "_"): (OpType.SET, value)}) is error


@pytest.mark.parametrize("resource", [ConfigResource(32, "g"), ConfigResource(16, "mine")])
def test_lists_of_groups_and_client_metrics_cannot_be_appended_to(
    cluster: ControlledCluster, resource: ConfigResource
) -> None:
    name = "metrics" if resource.type == 16 else "streams.rack.aware.assignment.tags"
    for operation in (OpType.APPEND, OpType.SUBTRACT):
        assert alter(cluster, resource, **{name.replace(".", "_"): (operation, "a")}) is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("99999999999", ErrorCode.INVALID_REQUEST),
        ("1_0", ErrorCode.INVALID_REQUEST),
        (" 1", ErrorCode.INVALID_REQUEST),
        ("-1", ErrorCode.INVALID_REQUEST),
        ("\U0001d7cf", ErrorCode.INVALID_REQUEST),
        ("+1", ErrorCode.NONE),
        ("\u0661", ErrorCode.NONE),
    ],
)
def test_the_name_of_a_broker_resource_is_an_integer_as_java_parses_it(
    cluster: ControlledCluster, name: str, error: ErrorCode
) -> None:
    assert alter(cluster, ConfigResource(4, name), log_retention_ms=(OpType.SET, "1")) is error


def test_a_value_is_no_longer_than_its_record_may_have_it(cluster: ControlledCluster) -> None:
    assert alter(cluster, CLUSTER, any_name=(OpType.SET, "\U0001f980" * 8_191)) is ErrorCode.NONE
    assert len(cluster.added) == 1
    assert alter(cluster, CLUSTER, any_name=(OpType.SET, "\U0001f980" * 8_192)) is ErrorCode.INVALID_CONFIG


def test_legacy_changes_delete_what_they_do_not_name(cluster: ControlledCluster) -> None:
    alter(cluster, ORDERS, retention_ms=(OpType.SET, "1000"), flush_ms=(OpType.SET, "5"))
    answers = cluster.run(lambda state: legacy_alter_configs(state, {ORDERS: {"flush.ms": "6"}}))
    assert answers[ORDERS].error is ErrorCode.NONE
    assert values(cluster, ORDERS) == {"flush.ms": "6"}
    assert cluster.added[-1] == ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None)


def test_validating_changes_nothing(cluster: ControlledCluster) -> None:
    change = {ORDERS: {"retention.ms": ConfigOperation(OpType.SET, "1")}}
    cluster.run(lambda state: incremental_alter_configs(state, change, validate_only=True))
    assert cluster.added == []


def test_with_elr_min_isr_is_set_for_the_cluster_or_a_topic_and_a_change_clears_eligible_leaders() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    cluster.assigned("orders", (1,))
    two = {"min_insync_replicas": (OpType.SET, "2")}
    assert alter(cluster, BROKER, **two) is ErrorCode.INVALID_CONFIG
    assert alter(cluster, CLUSTER, min_insync_replicas=(OpType.DELETE,)) is ErrorCode.INVALID_CONFIG
    assert alter(cluster, CLUSTER, **two) is ErrorCode.NONE
    assert cluster.added[-1] == ClearElrRecord(topic_name="")
    assert alter(cluster, ORDERS, **two) is ErrorCode.NONE
    assert cluster.added[-1] == ClearElrRecord(topic_name="orders")


def test_directories_are_cordoned_through_a_broker_only() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    change = {BROKER: {"cordoned.log.dirs": ConfigOperation(OpType.SET, "/data")}}
    answers = cluster.run(lambda state: incremental_alter_configs(state, change, forwarded=False))
    assert answers[BROKER].error is ErrorCode.INVALID_CONFIG
    assert alter(cluster, BROKER, cordoned_log_dirs=(OpType.SET, "/data")) is ErrorCode.NONE
    old = ControlledCluster(version=from_feature_level(29))
    old.start(1)
    assert alter(old, BROKER, cordoned_log_dirs=(OpType.SET, "/data")) is ErrorCode.INVALID_CONFIG
