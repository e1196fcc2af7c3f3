"""A node's configuration: Kafka's names from a file and from the command line, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.server.node_config import (
    STANDARD_AUTHORIZER,
    ListenerAddress,
    NodeSettings,
    parse_listener,
)


def settings(**values: str) -> NodeSettings:
    """Settings with names in which _ stands for a dot."""
    return NodeSettings(values={name.replace("_", "."): value for name, value in values.items()})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("CONTROLLER://127.0.0.1:9093", "127.0.0.1", 9093),
        ("CONTROLLER://localhost:0", "localhost", 0),
        ("CONTROLLER://[::1]:9093", "::1", 9093),
        ("CONTROLLER://[::1]:0", "::1", 0),
        (" CONTROLLER://:9093 ", "127.0.0.1", 9093),
        ("CONTROLLER://:0", "127.0.0.1", 0),
    ],
)
def test_a_listener_has_a_name_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_listener(text) == ListenerAddress(name="CONTROLLER", host=host, port=port)


@pytest.mark.parametrize(
    "text", ["", "9093", "localhost:9093", "://localhost:1", "C://h", "C://h:1,C://h:2", "C://h:70000"]
)
def test_anything_else_is_no_listener(text: str) -> None:
    with pytest.raises(UsageError):
        parse_listener(text)


def test_what_is_given_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "node.properties"
    file.write_text("# a node\nnode.id = 7\nnum.partitions=3\\\n4\nlisteners=A://:1, B://[::1]:2\n")
    read = NodeSettings.read(str(file), [("num.partitions", "5")])
    assert (read.value("node.id"), read.value("num.partitions")) == (7, 5)
    assert [str(one) for one in read.listeners("listeners")] == ["A://127.0.0.1:1", "B://[::1]:2"]
    assert NodeSettings.read(str(file)).value("num.partitions") == 34
    assert read.text("none") is None
    assert (read.value("num.io.threads"), read.value("log.retention.ms")) == (8, None)
    assert read.value("delete.topic.enable") is True


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"num_partitions": "1.5"}, "num.partitions has the value '1.5' in the settings: it is no whole number."),
        ({"num_partitions": ""}, "num.partitions has the value '' in the settings: it is no whole number."),
        ({"num_partitions": "0"}, "num.partitions has the value '0' in the settings: it is below 1."),
        ({"delete_topic_enable": "yes"}, "delete.topic.enable has the value 'yes' in the settings: "),
        ({"ssl_client_auth": "maybe"}, "ssl.client.auth has the value 'maybe' in the settings: 'maybe' is none of "),
        ({"log_roll_ms": "0"}, "the settings can't be those of a node: log.roll.ms is below 1."),
        ({"log_retention_minutes": "0"}, "log.retention.ms is 0: it is 1 at least, or -1 without limit."),
        ({"queued_max_request_bytes": "9"}, "queued.max.request.bytes is below socket.request.max.bytes."),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip is 0, and no max.connections.per.ip.overrides are"),
        ({"node_id": "1", "broker_id": "2"}, "broker.id is 2, and node.id is 1."),
        ({"node_id": "1", "broker_id": "-1"}, "broker.id is -1, and node.id is 1."),
    ],
)
def test_what_kafka_refuses_is_refused(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as fault:
        settings(**values).check()
    assert sentence in str(fault.value)


def test_what_kafka_takes_is_taken() -> None:
    settings(
        node_id="1", broker_id="1", log_retention_ms="-1", log_retention_hours="0", max_connections_per_ip="0",
        max_connections_per_ip_overrides="h:1", connections_max_idle_ms="-1", broker_session_timeout_ms="-1",
        no_such_setting="x", listener_name_a_ssl_client_auth="none",
    ).check()  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), [(None, "can't be read"), (b"a=\\u12", "is no properties file")])
def test_a_file_that_can_not_be_read_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "node.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=reason) as fault:
        NodeSettings.read(str(file))
    assert str(file) in str(fault.value)


def test_settings_without_effect_have_their_reasons() -> None:
    made = settings(
        num_partitons="1", num_partitions="2", foo="3", offsets_topic_num_partitions="1", num_network_threads="3",
        log_preallocate="true", log_cleaner_enable="true", super_users="User:a",
        listener_name_a_ssl_client_auth="required", listener_name_a_plain_sasl_login_class="x",
    )  # fmt: skip
    assert made.without_effect == {
        "foo": "Kafka has no such setting",
        "listener.name.a.plain.sasl.login.class": "logins by GSSAPI (Kerberos) and OAUTHBEARER are not served",
        "log.preallocate": "segments grow as they are written",
        "num.partitons": "did you mean num.partitions?",
        "offsets.topic.num.partitions": "consumer, share and streams groups are not served",
    }


def test_there_is_one_authorizer() -> None:
    assert settings().authorizer is None
    assert settings(authorizer_class_name="").authorizer is None
    assert settings(authorizer_class_name=f" {STANDARD_AUTHORIZER} ").authorizer is not None
    with pytest.raises(UsageError, match="there is only"):
        assert settings(authorizer_class_name="com.example.Authorizer").authorizer


def test_others_are_given_the_advertised_listeners() -> None:
    bound = [parse_listener("A://0.0.0.0:1"), parse_listener("B://127.0.0.1:2")]
    made = settings(advertised_listeners="A://a.example:9,C://c:1", listeners="A://:1,B://:2,C://:3")
    assert {name: str(one) for name, one in made.advertised(bound).items()} == {
        "A": "A://a.example:9", "B": "B://127.0.0.1:2",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"advertised\.listeners names C, which is none of the listeners A, B"):
        settings(advertised_listeners="C://c:1").advertised(bound)
    with pytest.raises(UsageError, match=r"A://0\.0\.0\.0:1 is no address that others can connect to"):
        settings().advertised(bound)
