"""What a controller makes of Kafka's settings."""

from __future__ import annotations

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.node_config import ListenerAddress, NodeSettings, parse_listener

HERE = (parse_listener("CONTROLLER://127.0.0.1:9093"),)


def config(
    *, node_id: int | None = 100, listeners: tuple[ListenerAddress, ...] = HERE, insecure: bool = False, **values: str
) -> ControllerServerConfig:
    """A configuration whose settings have _ in place of the dots."""
    settings = NodeSettings(values={name.replace("_", "."): value for name, value in values.items()})
    return ControllerServerConfig.of("lake", settings, node_id=node_id, listeners=listeners, insecure=insecure)


def test_what_is_not_set_is_as_in_kafka() -> None:
    made = config().controller("id", ())
    assert (made.node_id, made.cluster_id) == (100, "id")
    assert (made.default_replication_factor, made.num_partitions) == (1, 1)
    assert (made.broker_session_timeout_ms, made.max_idle_interval_ms, made.quorum_fetch_timeout_ms) == (
        9_000,
        500,
        2_000,
    )
    assert made.leader_imbalance_check_interval_seconds == 300
    assert made.static_configs == {}
    assert config().authorizer is None
    assert config().delete_topic_enable
    assert config().heartbeat_timeout_ms == 1_000
    assert config().snapshots.max_interval_ms == 3_600_000


def test_settings_reach_what_heeds_them() -> None:
    made = config(
        default_replication_factor="3", num_partitions="6", broker_session_timeout_ms="4000",
        metadata_max_idle_interval_ms="0", auto_leader_rebalance_enable="false", log_retention_ms="5",
        min_insync_replicas="2", controller_quorum_fetch_timeout_ms="700", unclean_leader_election_interval_ms="9",
        broker_heartbeat_interval_ms="300", delete_topic_enable="false", metadata_log_max_snapshot_interval_ms="0",
        max_connections="7", authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:a;User:b",
    )  # fmt: skip
    controller = made.controller("id", ())
    assert (controller.default_replication_factor, controller.num_partitions) == (3, 6)
    assert (controller.broker_session_timeout_ms, controller.quorum_fetch_timeout_ms) == (4_000, 700)
    assert (controller.max_idle_interval_ms, controller.leader_imbalance_check_interval_seconds) == (None, None)
    assert controller.unclean_leader_election_interval_ms == 9
    assert (controller.static_configs["log.retention.ms"], controller.static_configs["min.insync.replicas"]) == (
        "5",
        "2",
    )
    assert made.heartbeat_timeout_ms == 150
    assert not made.delete_topic_enable
    assert made.snapshots.max_interval_ms is None
    assert made.limits("CONTROLLER").max_connections == 7
    assert made.authorizer is not None
    assert made.authorizer.super_users == {"User:a", "User:b"}
    assert made.without_effect == {}


def test_id_and_listeners_may_come_from_the_settings() -> None:
    made = ControllerServerConfig.of(
        "lake",
        NodeSettings(
            values={
                "node.id": "5", "controller.listener.names": "C", "listeners": "PLAINTEXT://:1,C://127.0.0.1:2",
                "process.roles": "broker,controller",
            }
        ),
    )  # fmt: skip
    assert made.node_id == 5
    assert [str(one) for one in made.listeners] == ["C://127.0.0.1:2"]


@pytest.mark.parametrize(
    "values",
    [
        {"num_partitions": "0"}, {"broker_session_timeout_ms": "x"},
        {"auto_leader_rebalance_enable": "maybe"}, {"process_roles": "broker"}, {"authorizer_class_name": "a.B"},
        {"super_users": "alice", "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
        {"max_connections": "-1"}, {"metadata_log_max_record_bytes_between_snapshots": "0"},
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_before_anything_starts(values: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        config(**values)


def test_a_listener_that_others_reach_must_be_asked_for() -> None:
    everywhere = (parse_listener("CONTROLLER://0.0.0.0:9093"),)
    with pytest.raises(UsageError, match="--insecure-listeners"):
        config(listeners=everywhere)
    with pytest.raises(UsageError, match=r"advertised\.listeners"):
        config(listeners=everywhere, insecure=True)
    made = config(listeners=everywhere, insecure=True, advertised_listeners="CONTROLLER://c.example:9093")
    assert (made.listeners, made.advertised["CONTROLLER"].host) == (everywhere, "c.example")
    with pytest.raises(UsageError, match="same name"):
        config(listeners=HERE + HERE)
    with pytest.raises(UsageError, match="needs a listener"):
        config(listeners=())
    with pytest.raises(UsageError, match="needs an id"):
        config(node_id=None)


def test_settings_that_no_node_heeds_are_named() -> None:
    assert config(log_dirs="/x", num_partitons="3").without_effect == {
        "num.partitons": "did you mean num.partitions?",
    }  # fmt: skip
