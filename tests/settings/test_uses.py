"""What is said of each config that Kafka defines: who heeds it, or why nobody does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kraftlake
from kraftlake.settings.tables import BROKER, BROKER_CONFIGS, CONFIGS, TOPIC, key_of, why_ignored
from kraftlake.settings.topic_configs import TOPIC_CONFIGS
from kraftlake.settings.uses import Heeded, Ignored

IGNORED = 89
"""The configs that have no effect yet, without those that are not meant to be here. This number may only go down."""
ROOM = Path(kraftlake.__file__).parent
OF_LOGS = {synonym for key in TOPIC_CONFIGS.values() for synonym in key.synonyms}


def test_fewer_and_fewer_configs_have_no_effect() -> None:
    keys = [key for keys in CONFIGS.values() for key in keys.values()]
    assert all(key.use is not None for key in keys)
    ignored = [key for key in keys if isinstance(key.use, Ignored) and not key.use.is_non_goal]
    assert len(ignored) == IGNORED, "lower IGNORED to the number that is left"


@pytest.mark.parametrize("kind", [TOPIC, BROKER])
def test_what_is_heeded_is_read_somewhere(kind: int) -> None:
    """By its name or by the field of a settings class; brokers read the defaults of topic configs by the table."""
    source = "\n".join(path.read_text() for path in ROOM.rglob("*.py") if "settings" not in path.parts)
    names = {name for name, key in CONFIGS[kind].items() if isinstance(key.use, Heeded)}
    unread = {
        name
        for name in names - (OF_LOGS if kind == BROKER else set())
        if f'"{name}"' not in source and not re.search(rf"\b{name.replace('.', '_')}\b", source)
    }
    assert len(names) > 20
    assert unread == set()


def test_a_config_of_one_listener_is_defined_as_that_of_all() -> None:
    assert key_of(BROKER, "listener.name.a.max.connections") is BROKER_CONFIGS["max.connections"]
    assert key_of(TOPIC, "listener.name.a.retention.ms") is None
    assert key_of(99, "retention.ms") is None
    assert key_of(BROKER, "listener.name.a.plain.sasl.jaas.config") is BROKER_CONFIGS["sasl.jaas.config"]


def test_what_has_no_effect_counts_where_it_differs_from_the_default() -> None:
    assert why_ignored(TOPIC, "cleanup.policy", " delete , compact ") is None
    assert why_ignored(TOPIC, "preallocate", " FALSE ") is None
    assert why_ignored(TOPIC, "preallocate", "true") is not None
    assert why_ignored(BROKER, "no.such.setting", "1") is None
