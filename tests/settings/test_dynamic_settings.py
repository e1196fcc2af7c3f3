"""Which settings a running broker takes, each alone."""

from __future__ import annotations

import pytest

from kraftlake.settings.config_key import PER_BROKER, READ_ONLY
from kraftlake.settings.dynamic_settings import is_live, problem_of_setting, sound_settings
from kraftlake.settings.tables import BROKER_CONFIGS, of_listener

_KEY_STORE = "ssl.keystore.password"


def test_what_is_read_only_is_refused_with_its_name() -> None:
    fixed = [name for name, key in BROKER_CONFIGS.items() if key.update is READ_ONLY]
    assert len(fixed) > 200
    for name in fixed:
        assert (problem_of_setting(name, "1", of_all=False) or "").startswith(name)


def test_what_is_of_one_broker_is_refused_of_all() -> None:
    of_one = [name for name, key in BROKER_CONFIGS.items() if key.update is PER_BROKER and key.type == "STRING"]
    of_one = [name for name in of_one if key_of_stores(name) is False and name != "ssl.client.auth"]
    assert len(of_one) > 5
    for name in of_one:
        assert problem_of_setting(name, "x", of_all=False) is None
        assert problem_of_setting(name, "x", of_all=True) is not None


def key_of_stores(name: str) -> bool:
    """Whether a setting is of a key store or a trust store."""
    return name.startswith(("ssl.keystore", "ssl.truststore", "ssl.key."))


@pytest.mark.parametrize(
    ("name", "value", "of_one", "of_all"),
    [
        (_KEY_STORE, "x", False, False), (f"listener.name.a.{_KEY_STORE}", "x", True, False),
        ("listener.name.a.max.connections", "5", True, True), ("listener.name.a.max.connections", "x", False, False),
        ("listener.name.a.log.dirs", "x", True, False), ("no.such", "x", True, True), ("", "x", True, True),
        ("log.cleanup.policy", "delete,delete", False, False), ("log.cleanup.policy", "delete, compact", True, True),
        ("config.providers", "a,a", True, True), ("principal.builder.class", "a.b", False, False),
        ("message.max.bytes", " +5 ", True, True), ("message.max.bytes", "-1", False, False),
    ],
)  # fmt: skip
def test_a_value_is_taken_of_one_broker_and_of_all(name: str, value: str, *, of_one: bool, of_all: bool) -> None:
    assert (problem_of_setting(name, value, of_all=False) is None) is of_one
    assert (problem_of_setting(name, value, of_all=True) is None) is of_all
    assert sound_settings({name: value}, of_all=False) == ({name: value} if of_one else {})


def test_a_secret_is_not_in_the_reason() -> None:
    assert "swordfish" not in (problem_of_setting(_KEY_STORE, "swordfish", of_all=False) or "swordfish")


def test_a_listener_keeps_all_but_its_limits_and_key_stores() -> None:
    assert of_listener("listener.name.plaintext.ssl.protocol") == "ssl.protocol"
    assert of_listener("ssl.protocol") is None
    assert is_live("max.connections")
    assert is_live(_KEY_STORE)
    assert not is_live("ssl.protocol")
