"""The settings of a broker, under Kafka's names."""

from __future__ import annotations

import re

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.server.broker.broker_config import CHECKPOINT, RETENTION_CHECK, BrokerConfig, log_defaults
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from kraftlake.server.requests.listener_limits import ListenerLimits

HOUR_MS = 3_600_000


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig(
        broker_id=7, bootstrap="c:9093", log_dirs=("a", "b"),
        listener=ListenerAddress(name="INTERNAL", host="h", port=1),
        settings={name.replace("_", "."): value for name, value in settings.items()},
    )  # fmt: skip


def test_the_defaults_are_those_of_kafka() -> None:
    made = config()
    assert made.log_defaults == log_defaults({})
    assert made.log_defaults.retention_ms == 168 * HOUR_MS
    assert (made.replication.inter_broker_listener_name, made.replication.num_replica_alter_log_dirs_threads) == (
        "INTERNAL",
        2,
    )
    assert made.lifecycle.broker_session_timeout_ms == 9_000


def test_settings_replace_defaults() -> None:
    made = config(
        num_replica_fetchers="3", broker_heartbeat_interval_ms="500", log_segment_bytes=" 1048576 ",
        log_retention_check_interval_ms="1000",
    )  # fmt: skip
    assert (made.value(RETENTION_CHECK), made.value(CHECKPOINT)) == (1000, 60_000)
    assert made.replication.num_replica_fetchers == 3
    assert made.lifecycle.broker_heartbeat_interval_ms == 500
    assert made.log_defaults.segment_bytes == 1 << 20


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.ms": "5", "log.retention.minutes": "3"}, 5),
        ({"log.retention.hours": "-1"}, -1),
        ({"nonsense": "1"}, 168 * HOUR_MS),
    ],
)
def test_the_finer_unit_counts(settings: dict[str, str], retention_ms: int) -> None:
    assert log_defaults(settings).retention_ms == retention_ms


def test_directories_are_cordoned_by_name_or_all() -> None:
    assert config().cordoned_log_dirs == ()
    assert config(cordoned_log_dirs="b").cordoned_log_dirs == ("b",)
    assert config(cordoned_log_dirs="*").cordoned_log_dirs == ("a", "b")


def test_texts_are_taken_as_they_are() -> None:
    made = log_defaults({"log.cleanup.policy": "compact,delete", "unclean.leader.election.enable": "true"})
    assert made.cleanup_policy == ("compact", "delete")
    assert made.unclean_leader_election_enable
    made = log_defaults({"compression.type": "zstd", "compression.zstd.level": "-5"})
    assert (made.compression_type, made.compression_zstd_level) == ("zstd", -5)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"log_retention_hour": "1"}, "log.retention.hour is no broker setting that is known here: did you mean log"),
        (
            {"log_retention_hours": "soon"},
            "log.retention.hours has the value 'soon' in the settings: it is no whole number.",
        ),
        ({"num_replica_fetchers": "0"}, "num.replica.fetchers has the value '0' in the settings: it is below 1."),
        (
            {"log_segment_bytes": "1048575"},
            "log.segment.bytes has the value '1048575' in the settings: it is below 1048576.",
        ),
        ({"log_segment_bytes": "2147483648"}, "it needs more than 32 bits"),
        ({"replica_fetch_max_bytes": "-5"}, "it is below 0."),
        ({"replica_fetch_wait_max_ms": "30001"}, "replica.fetch.wait.max.ms is above replica.socket.timeout.ms."),
        (
            {"log_cleanup_policy": "remove"},
            "log.cleanup.policy has the value 'remove' in the settings: 'remove' is none of compact",
        ),
        (
            {"compression_type": "brotli"},
            "compression.type has the value 'brotli' in the settings: 'brotli' is none of ",
        ),
        ({"compression_gzip_level": "10"}, "compression.gzip.level has the value '10' in the settings: it is above 9."),
        ({"num_replica_fetchers": "many"}, "num.replica.fetchers has the value 'many'"),
        ({"cordoned_log_dirs": "a,c"}, "cordoned.log.dirs names c, which is none of the log directories."),
        ({"inter_broker_listener_name": "X"}, "inter.broker.listener.name is no broker setting"),
    ],
)
def test_what_is_wrong_is_said(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as fault:
        config(**settings)
    assert sentence in str(fault.value)


def test_times_that_kafka_takes_and_no_node_can_work_with_are_a_millisecond() -> None:
    made = config(broker_heartbeat_interval_ms="0", broker_session_timeout_ms="-5", replica_fetch_backoff_ms="0")
    assert (made.lifecycle.broker_heartbeat_interval_ms, made.lifecycle.broker_session_timeout_ms) == (1, 1)
    assert made.replication.replica_fetch_backoff_ms == 0


def test_the_listener_of_a_broker_has_the_limits_of_its_settings() -> None:
    settings = {
        "socket.request.max.bytes": "4096", "queued.max.request.bytes": "-1", "num.io.threads": "3",
        "max.connections": "9", "listener.name.internal.max.connections": "5", "listener.name.x.max.connections": "1",
        "listener.name.internal.max.connections.per.ip": "2", "listener.security.protocol.map": "INTERNAL:PLAINTEXT",
    }  # fmt: skip
    listener = ListenerAddress(name="INTERNAL", host="127.0.0.1", port=1)
    made = BrokerConfig(broker_id=7, lake="lake", log_dirs=("a",), listener=listener, settings=settings)
    limits = made.limits("INTERNAL")
    assert (limits.socket_request_max_bytes, limits.num_io_threads, limits.max_connections) == (4096, 3, 5)
    assert limits.max_connections_per_ip == ListenerLimits().max_connections_per_ip, "Kafka has one for all listeners"
    assert limits.queued_max_request_bytes == ListenerLimits().queued_max_request_bytes
    long = {"socket.request.max.bytes": str(1 << 30), "listener.security.protocol.map": "INTERNAL:PLAINTEXT"}
    made = BrokerConfig(broker_id=7, lake="lake", log_dirs=("a",), listener=listener, settings=long)
    limits = made.limits("INTERNAL")
    assert limits.buffered_max_bytes >= 1 << 30, "a request of the longest size is taken"


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        (
            {"inter.broker.listener.name": "OTHER"},
            "inter.broker.listener.name is OTHER, which is none of the listeners PLAINTEXT.",
        ),
        (
            {"security.inter.broker.protocol": "SASL_SSL"},
            "security.inter.broker.protocol is SASL_SSL, which is none of the listeners PLAINTEXT.",
        ),
        (
            {"security.inter.broker.protocol": "PLAINTEXT", "inter.broker.listener.name": "PLAINTEXT"},
            "Both inter.broker.listener.name and security.inter.broker.protocol are set in the settings: drop one.",
        ),
    ],
)
def test_brokers_connect_to_the_one_listener(settings: dict[str, str], refusal: str) -> None:
    listener = ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=1)
    with pytest.raises(UsageError, match=f"^{re.escape(refusal)}$"):
        BrokerConfig(broker_id=7, lake="lake", log_dirs=("a",), listener=listener, settings=settings)
    for name in ("inter.broker.listener.name", "security.inter.broker.protocol"):
        made = BrokerConfig(
            broker_id=7, lake="lake", log_dirs=("a",), listener=listener, settings={name: " PLAINTEXT "}
        )
        assert made.replication.inter_broker_listener_name == "PLAINTEXT"


def test_of_several_listeners_plaintext_is_between_brokers_without_a_name_as_in_kafka() -> None:
    values = {
        "node.id": "7", "log.dirs": "/a", "listeners": "CLIENTS://127.0.0.1:1,PLAINTEXT://127.0.0.1:2",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }  # fmt: skip
    made = BrokerConfig.of("lake", NodeSettings(values=values))
    assert (made.listener.name, [one.name for one in made.more_listeners]) == ("PLAINTEXT", ["CLIENTS"])


def test_of_several_listeners_the_named_one_is_between_brokers() -> None:
    values = {
        "node.id": "7", "log.dirs": "/a", "controller.listener.names": "C",
        "listeners": "CLIENTS://127.0.0.1:1,BROKERS://127.0.0.1:2,C://127.0.0.1:3",
        "advertised.listeners": "CLIENTS://b.example:1",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,C:PLAINTEXT",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"inter.broker.listener.name is missing .*: it is one of CLIENTS, BROKERS"):
        BrokerConfig.of("lake", NodeSettings(values=values))
    made = BrokerConfig.of("lake", NodeSettings(values={**values, "inter.broker.listener.name": "BROKERS"}))
    assert [one.name for one in made.listeners] == ["BROKERS", "CLIENTS"]
    assert made.replication.inter_broker_listener_name == "BROKERS"
    assert {name: str(one) for name, one in made.advertised.items()} == {
        "BROKERS": "BROKERS://127.0.0.1:2", "CLIENTS": "CLIENTS://b.example:1",
    }  # fmt: skip
    assert made.static_settings["listeners"] == "BROKERS://127.0.0.1:2,CLIENTS://127.0.0.1:1"
    with pytest.raises(UsageError, match="Two listeners have the same name: A, A"):
        BrokerConfig.of("lake", NodeSettings(values={**values, "listeners": "A://127.0.0.1:1,A://127.0.0.1:2"}))


def test_a_file_for_both_roles_is_one_of_a_broker() -> None:
    values = {
        "broker.id": "7", "process.roles": "broker,controller", "log.dirs": "/a", "controller.listener.names": "C",
        "listeners": "B://127.0.0.1:1,C://127.0.0.1:2", "advertised.listeners": "B://b.example:1,C://c.example:2",
        "listener.security.protocol.map": "B:PLAINTEXT,C:PLAINTEXT",
    }  # fmt: skip
    made = BrokerConfig.of("lake", NodeSettings(values=values))
    assert (made.broker_id, str(made.listener), made.advertised["B"].host) == (7, "B://127.0.0.1:1", "b.example")
    assert made.static_settings["process.roles"] == "broker"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"broker.id": "8"}, "n.properties can't be those of a node: broker.id is 8, and node.id is 7."),
        ({"process.roles": "broker,x"}, "process.roles has the value 'broker,x' in n.properties: 'x' is none of"),
        ({"log.dirs": "", "log.dir": "/a"}, "log.dirs has the value '' in n.properties: the list is empty."),
    ],
)
def test_the_settings_that_say_which_broker_it_is_are_checked_too(wrong: dict[str, str], sentence: str) -> None:
    values = {"node.id": "7", "log.dirs": "/a", **wrong}
    with pytest.raises(UsageError) as fault:
        BrokerConfig.of("lake", NodeSettings(values=values, source="n.properties"))
    assert sentence in str(fault.value)
