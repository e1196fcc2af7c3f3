from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.runtime.errors import UsageError
from kraftlake.server.listener_security import ServerSasl, listener_security, security_protocols
from kraftlake.server.node_config import NodeSettings, check_reachable, parse_listener

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def sasl(**settings: str) -> ServerSasl:
    """The logins of a listener L for SASL_PLAINTEXT; `_` stands for the dots in names of settings."""
    values = {name.replace("_", "."): value for name, value in settings.items()}
    found = listener_security(
        NodeSettings(values={"listener.security.protocol.map": "L:SASL_PLAINTEXT", **values}), "L"
    )
    assert found.sasl is not None
    return found.sasl


def test_users_of_plain_come_from_a_setting_before_the_jaas_file_of_kafkas_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(
        f"KafkaServer {{ {PLAIN} required user_a=of-all; }}; l.KafkaServer {{ {PLAIN} required user_a=own; }};"
    )
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={file}")
    assert sasl(sasl_enabled_mechanisms="PLAIN").plain_password("a") == "own"
    own = sasl(sasl_enabled_mechanisms="PLAIN", listener_name_l_plain_sasl_jaas_config=f"{PLAIN} required user_b=set;")
    assert (own.plain_password("a"), own.plain_password("b")) == (None, "set")
    assert "own" not in repr(own)
    file.write_text("KafkaServer {")
    with pytest.raises(UsageError, match=r"jaas\.conf .*KAFKA_OPTS\) does not"):
        sasl(sasl_enabled_mechanisms="PLAIN")
    monkeypatch.delenv("KAFKA_OPTS")
    with pytest.raises(UsageError, match="PLAIN of the listener L has no users"):
        sasl(sasl_enabled_mechanisms="PLAIN")


def test_a_mechanism_that_is_not_served_is_refused_and_kafkas_default_is_named_as_that() -> None:
    with pytest.raises(UsageError, match="names GSSAPI, Kafka's default, in the settings: PLAIN, SCRAM"):
        sasl()
    with pytest.raises(UsageError, match="names OAUTHBEARER in the settings"):
        sasl(sasl_enabled_mechanisms="OAUTHBEARER")


def test_the_longest_session_is_that_of_the_mechanism_of_the_listener_or_of_the_node() -> None:
    made = sasl(
        sasl_enabled_mechanisms="SCRAM-SHA-256,SCRAM-SHA-512", connections_max_reauth_ms="5",
        **{"listener.name.l.scram-sha-512.connections.max.reauth.ms": "7"},
    )  # fmt: skip
    assert made.max_reauth_ms == {"SCRAM-SHA-256": 5, "SCRAM-SHA-512": 7}


def test_listeners_of_controllers_are_plain_unless_others_are_named_after_protocols_with_security() -> None:
    assert security_protocols({})["CONTROLLER"] is SecurityProtocol.PLAINTEXT
    assert security_protocols({"controller.listener.names": "C"}, ["D"])["C"] is SecurityProtocol.PLAINTEXT
    assert "CONTROLLER" not in security_protocols({"listeners": "SASL_SSL://:1,CONTROLLER://:2"})
    assert security_protocols({"listener.security.protocol.map": "a:ssl"}) == {"A": SecurityProtocol.SSL}


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_other_machines_reach_a_listener_without_tls_only_if_that_is_meant(protocol: str) -> None:
    listener, without = parse_listener("L://192.0.2.1:9092"), SecurityProtocol[protocol]
    check_reachable(listener, without, insecure=True)
    check_reachable(listener, SecurityProtocol.SSL, insecure=False)
    check_reachable(listener, SecurityProtocol.SASL_SSL, insecure=False)
    with pytest.raises(UsageError, match=f"{protocol} .*--insecure-listeners"):
        check_reachable(listener, without, insecure=False)
