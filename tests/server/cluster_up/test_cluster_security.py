"""What a secure cluster keeps in its folder, and the users that its lake gets."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rpds import HashTrieMap

from kraftlake.controller.access.scram import ScramUpsertion
from kraftlake.image.scram_image import ScramCredentialData, ScramImage
from kraftlake.protocol.client_config import parse_client_config
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.java_properties import parse_properties
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.cluster_up.cluster_plan import ClusterPlan, NodeKind
from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
from kraftlake.server.node_config import NodeSettings

NOW = datetime(2026, 11, 29, 22, tzinfo=UTC)
BOOTSTRAP = "127.0.0.1:9092,127.0.0.1:9093"


def written(folder: Path) -> ClusterSecurity:
    made = ClusterSecurity.at(folder)
    made.write({"broker 1": folder / "broker-1" / "keystore.pem"}, BOOTSTRAP, NOW)
    return made


def with_users(security: ClusterSecurity, *, but: dict[str, str] | None = None) -> ScramImage:
    """The image of a lake with the users; some have another password."""
    users: HashTrieMap[str, ScramCredentialData] = HashTrieMap()
    for name, password in {**security.passwords, **(but or {})}.items():
        record = ScramUpsertion.of_password(name, 2, password, b"salt", 4096).to_record().message
        users = users.insert(name, ScramCredentialData.from_record(record))  # type: ignore[arg-type]
    return ScramImage(mechanisms=HashTrieMap({2: users}))


def test_all_but_the_authority_is_for_its_owner_alone(tmp_path: Path) -> None:
    written(tmp_path / "security")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "security").iterdir()}
    assert modes.pop("ca.pem") == 0o644
    assert stat.S_IMODE((tmp_path / "security").stat().st_mode) == 0o700
    assert modes.pop("broker-1") & 0o700 == 0o700
    assert modes == dict.fromkeys(
        ("ca.key", "passwords.properties", "client.properties", "librdkafka.properties", "kafka-python.json"), 0o600
    )  # fmt: skip


def test_passwords_are_made_once_and_shown_by_no_repr(tmp_path: Path) -> None:
    first, second = written(tmp_path), written(tmp_path)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.passwords == second.passwords
    assert len({*first.passwords.values()}) == 2
    assert all(len(password) >= 32 and password not in repr(first) for password in first.passwords.values())


def test_nothing_is_written_before_all_is_known_to_be_possible(tmp_path: Path) -> None:
    ClusterSecurity.at(tmp_path / "security")
    assert not (tmp_path / "security").exists()


def test_three_kinds_of_clients_get_the_same_login(tmp_path: Path) -> None:
    made = written(tmp_path)
    password, authority = made.passwords["admin"], str(tmp_path / "ca.pem")
    java = parse_properties(made.client_properties.read_bytes())
    config = parse_client_config(java, "client.properties")
    assert config.sasl is not None
    assert (config.sasl.mechanism, config.sasl.user, config.sasl.password) == ("SCRAM-SHA-512", "admin", password)
    assert config.tls is not None
    assert config.tls.truststore is not None
    assert (config.tls.truststore.location, config.tls.check_host) == (authority, True)
    assert java["bootstrap.servers"] == BOOTSTRAP
    librdkafka = parse_properties(made.librdkafka_properties.read_bytes())
    assert (librdkafka["sasl.username"], librdkafka["sasl.password"]) == ("admin", password)
    assert (librdkafka["ssl.ca.location"], librdkafka["security.protocol"]) == (authority, "SASL_SSL")
    python = json.loads(made.python_arguments.read_text())
    assert (python["sasl_plain_username"], python["sasl_plain_password"]) == ("admin", password)
    assert python["bootstrap_servers"] == BOOTSTRAP.split(",")


def test_an_empty_lake_lacks_both_users_and_one_that_has_them_lacks_none(tmp_path: Path) -> None:
    made = written(tmp_path)
    missing, warning = made.credentials(ScramImage())
    assert ([one.name for one in missing], warning) == (["admin", "node"], None)
    assert written(tmp_path).credentials(with_users(made)) == ([], None)


def test_the_nodes_password_is_restored_and_a_changed_one_of_the_admin_is_reported(tmp_path: Path) -> None:
    made, again = written(tmp_path), written(tmp_path)
    changed = with_users(made, but={"admin": "chosen by hand", "node": "another"})
    missing, warning = again.credentials(changed)
    assert [one.name for one in missing] == ["node"]
    assert warning is not None
    assert warning.startswith(f"The password of admin was changed: write it into {tmp_path / 'passwords.properties'}")
    assert "chosen" not in warning


def test_new_passwords_replace_those_of_a_folder_that_is_gone(tmp_path: Path) -> None:
    missing, warning = written(tmp_path / "b").credentials(with_users(written(tmp_path / "a")))
    assert ([one.name for one in missing], warning) == (["admin", "node"], None)


def test_passwords_that_can_not_be_read_are_reported(tmp_path: Path) -> None:
    (tmp_path / "passwords.properties").mkdir()
    with pytest.raises(EnvironmentFaultError, match=r"passwords\.properties can't be read: Is a directory"):
        ClusterSecurity.at(tmp_path)


def test_each_node_is_planned_with_tls_logins_and_acls(tmp_path: Path) -> None:
    given = {"super.users": "User:root", "num.partitions": "3"}
    plan = ClusterPlan.of(
        "lake", tmp_path, brokers=1, controllers=1, port=9092, settings=NodeSettings(values=given),
        security=ClusterSecurity.at(tmp_path / "security"),
    )  # fmt: skip
    broker, controller = plan.nodes
    assert (str(broker.listener), str(controller.listener)) == (
        "SASL_SSL://127.0.0.1:9092", "CONTROLLER://127.0.0.1:9093",
    )  # fmt: skip
    assert not any(password in f"{plan!r} {broker.arguments}" for password in plan.security.passwords.values())  # type: ignore[union-attr]
    assert ("-v" in controller.arguments, "-v" in broker.arguments) == (True, False)
    assert controller.settings["num.partitions"] == "3"
    config = BrokerConfig(
        broker_id=1, lake="lake", log_dirs=("d",), listener=broker.listener, settings=broker.settings
    )  # fmt: skip
    assert config.authorizer is not None
    assert config.authorizer.super_users == {"User:admin", "User:node", "User:root"}
    for client in (config.to_brokers, config.to_controllers):
        assert client.sasl is not None
        assert (client.sasl.mechanism, client.sasl.user) == ("SCRAM-SHA-512", "node")
    assert plan.of_kind(NodeKind.BROKER) == (broker,)
