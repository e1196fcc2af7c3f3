"""The tables of configs, compared with Kafka 4.4's own definitions: names, types, defaults, verdicts, update modes."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

import pytest

from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
from kraftlake.settings.config_key import READ_ONLY, ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import BROKER_CONFIGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS
from tests.controller.random_configs import value_of
from tests.interop.kafka_configs import ask_configs

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("KRAFTLAKE_SEED") or 0)
VALUES = 2_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 100
KEYS: dict[str, Mapping[str, ConfigKey]] = {
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
    "broker": BROKER_CONFIGS,
}


@pytest.mark.parametrize("kind", KEYS)
def test_the_definitions_of_configs_are_kafkas(kind: str) -> None:
    assert {name: [key.type, key.default] for name, key in KEYS[kind].items()} == ask_configs("definitions")[kind]


def test_configs_of_brokers_may_be_set_where_kafka_lets_them() -> None:
    ours = {name: key.update.value for name, key in BROKER_CONFIGS.items() if key.update is not READ_ONLY}
    assert ours == ask_configs("definitions")["update modes"]


@pytest.mark.parametrize("kind", KEYS)
def test_values_are_parsed_and_refused_as_kafka_does(kind: str) -> None:
    """Those that name a class of Java are left out: Kafka looks for it among its own."""
    draws = random.Random(SEED)
    verdicts = set()
    for name, key in KEYS[kind].items():
        if key.type == "CLASS":
            continue
        values = [value_of(draws, key) for _ in range(VALUES)]
        theirs = ask_configs("parse", kind=kind, name=name, values=values)
        ours = [_parsed(key, value) for value in values]
        assert ours == [_form(key, value) for value in theirs], name
        verdicts |= {value is None for value in theirs}
    assert verdicts == {True, False}


def _parsed(key: ConfigKey, value: str) -> Any:
    try:
        return _form(key, key.parse(value))
    except ValueError:
        return None


def _form(key: ConfigKey, value: Any) -> Any:
    """A value without what the two write in other ways; Kafka's parser has taken duplicates out of some lists."""
    if value is None or key.type in ("STRING", "PASSWORD"):
        return value
    if key.type == "LIST":
        return list(dict.fromkeys(value))
    return repr(float(value)) if key.type == "DOUBLE" else str(value).lower()
