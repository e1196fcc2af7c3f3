"""The effective settings of a node, as typed values.

Source: org.apache.kafka.server.config.AbstractKafkaConfig, kafka.server.KafkaConfig.extractLogConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kraftlake.image.nodes.kafka_text import double_text
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.tables import BROKER_CONFIGS, DYNAMIC_ONLY
from kraftlake.settings.topic_configs import TOPIC_CONFIGS, unit_ms


@attrs.frozen
class EffectiveSettings:
    """The effective settings of a node, with Kafka's defaults for missing ones."""

    values: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        """Return the parsed value; raises ValueError for a malformed value in the property file."""
        key = BROKER_CONFIGS[name]
        text = self.values.get(name, key.default)
        return None if text is None else parsed(key, text)

    def of_listener(self, listener: str, name: str) -> Any:
        """The value for a listener, by default the value for all listeners."""
        prefixed = self.of_one_listener(listener).get(name)
        return self[name] if prefixed is None else parsed(BROKER_CONFIGS[name], prefixed)

    def of_one_listener(self, listener: str) -> dict[str, str]:
        """The settings of one listener, without its prefix."""
        prefix = f"listener.name.{listener.lower()}."
        return {name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)}

    def of_topics(self, config: str) -> Any:
        """The default value of a topic config; times are in ms."""
        key = TOPIC_CONFIGS[config]
        for name in key.synonyms:
            value = self[name]
            if value is not None:
                value = value if unit_ms(name) == 1 else value * unit_ms(name)
                return max(value, -1) if config == "retention.ms" else value
        return None if key.default is None else parsed(key, key.default)


def parsed(key: ConfigKey, text: str) -> Any:
    """Convert a value to its type, without a check whether the config accepts it."""
    value = key.typed(text)
    return list(dict.fromkeys(value)) if key.type == "LIST" and key.check is not None else value


def parsed_text(key: ConfigKey, text: str) -> str:
    """Return a value in Kafka's canonical text form; a malformed value is unchanged."""
    try:
        return value_text(parsed(key, text))
    except ValueError:
        return text


def value_text(value: Any) -> str:
    """Convert a value to text. Source: org.apache.kafka.common.config.ConfigDef.convertToString."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    return ",".join(value) if isinstance(value, list) else str(value)


def setting_text(config: EffectiveSettings, name: str) -> str | None:
    """The value of a setting as text; None if it has none."""
    key = None if name in DYNAMIC_ONLY else BROKER_CONFIGS.get(name)
    text = config.values.get(name, None if key is None else key.default)
    return text if text is None or key is None else parsed_text(key, text)
