"""Validation of a single setting on a running broker: a fixed setting and a value of another type are refused.

Source: org.apache.kafka.server.config.DynamicBrokerConfig (validateConfigs), DynamicConfig.Broker.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kraftlake.settings.config_key import PER_BROKER, READ_ONLY, ConfigKey
from kraftlake.settings.tables import BROKER_CONFIGS, of_listener

_OF_KEY_STORES: Final = re.compile(r"ssl\.(key|trust)store\..*|ssl\.key\.password")
OF_ALL_LISTENERS: Final = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""Settings of a listener that may be set for all brokers."""
_PROVIDERS: Final = "config.providers"
_CLASSES: Final = frozenset(
    {
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
    }
)
"""Kafka's own classes for settings with a class name; no others exist here."""


def is_live(base: str) -> bool:
    """Whether a setting of an existing listener can be changed."""
    return base in OF_ALL_LISTENERS or _OF_KEY_STORES.fullmatch(base) is not None


def problem_of_setting(name: str, value: str, *, of_all: bool) -> str | None:
    """The reason why a setting of one broker, or `of_all`, can't have a value.

    None for any setting of other resources.
    """
    key, base = BROKER_CONFIGS.get(name), of_listener(name)
    if key is not None and key.update is READ_ONLY:
        return f"{name} can't be changed while the broker runs: change its properties file."
    if _OF_KEY_STORES.fullmatch(name):
        return f"{name} can be changed for one listener only: give listener.name.NAME.{name}."
    typed = key if base is None else BROKER_CONFIGS.get(base)
    if name.startswith(_PROVIDERS):
        return None
    if typed is not None and typed.update is not READ_ONLY:
        problem = problem_of_value(typed, value)
        if problem is None and typed.type == "LIST" and typed.check is not None and _has_twins(typed, value):
            problem = "a member of the list is named twice"
        if problem is not None:
            shown = "this value" if typed.is_sensitive else f"the value {value!r}"
            return f"{name} can't have {shown}: {problem}."
    is_for_one = base not in OF_ALL_LISTENERS if base is not None else key is not None and key.update is PER_BROKER
    if of_all and is_for_one:
        return f"{name} can't be set for all brokers: name one."
    return None


def sound_settings(configs: Mapping[str, str], *, of_all: bool) -> dict[str, str]:
    """Return the settings of a log that a broker accepts: a controller accepts any."""
    return {name: value for name, value in configs.items() if problem_of_setting(name, value, of_all=of_all) is None}


def problem_of_value(key: ConfigKey, text: str) -> str | None:
    """The reason why a config can't have a value on its own, or None."""
    try:
        value = key.parse(text)
    except ValueError as problem:
        return str(problem)
    if key.type == "CLASS" and value not in _CLASSES:
        return "there is no such class"
    return None


def _has_twins(key: ConfigKey, text: str) -> bool:
    value = key.parse(text)
    return len({*value}) < len(value)
