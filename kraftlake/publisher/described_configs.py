"""The effective configs of a node, a topic, a group and a client metrics subscription, each with the layer it is from.

Source: kafka.server.ConfigHelper, org.apache.kafka.server.config.DynamicBrokerConfig (brokerConfigSynonyms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import dropwhile
from typing import Final, NamedTuple

import attrs

from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig, in_units
from kraftlake.publisher.effective_settings import parsed_text, setting_text, value_text
from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
from kraftlake.settings.config_key import READ_ONLY, ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import BROKER, BROKER_CONFIGS, DYNAMIC_ONLY, base_of, key_of
from kraftlake.settings.topic_configs import TOPIC_CONFIGS


class ConfigSource(IntEnum):
    """The layer of a value. Source: org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    """A value of a config: its name where it was set, and its source."""

    name: str
    value: str | None
    source: ConfigSource


@attrs.frozen(kw_only=True)
class DescribedConfig:
    """A config with its effective value, secrets as they are; None for no value.

    `synonyms` are the values that are set for it or inherited, by precedence; `key` is its definition, None where Kafka
    has none, as of a plugin's.
    """

    name: str
    value: str | None = attrs.field(repr=False)
    key: ConfigKey | None = attrs.field(repr=False)
    synonyms: tuple[ConfigSynonym, ...] = attrs.field(repr=False)
    read_only: bool = False

    @property
    def source(self) -> ConfigSource:
        """The layer of the value."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT_CONFIG

    @property
    def is_sensitive(self) -> bool:
        """Whether the value may be a secret, as that of an unknown config may."""
        return self.key is None or self.key.is_sensitive


class NodeConfigs:
    """The configs of a node, and of what inherits from a node's."""

    def __init__(self, node: DynamicBrokerConfig) -> None:
        self._effective = node.effective
        self._of_all = node.of_all
        self._layers: tuple[tuple[ConfigSource, Mapping[str, str | None]], ...] = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, node.own),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, node.of_all),
            (ConfigSource.STATIC_BROKER_CONFIG, node.static),
            (
                ConfigSource.DEFAULT_CONFIG,
                {name: key.default for name, key in BROKER_CONFIGS.items() if name not in DYNAMIC_ONLY},
            ),
        )

    def of_node(self, names: Collection[str] | None = None) -> Iterator[DescribedConfig]:
        """Yield the node's settings, all or those of some names."""
        shown = {name for name, key in BROKER_CONFIGS.items() if not key.internal}
        for name in _selected({*shown, *self._effective.values}, names):
            yield _of_broker(name, setting_text(self._effective, name), self._synonyms(name))

    def of_all_nodes(self, names: Collection[str] | None = None) -> Iterator[DescribedConfig]:
        """Yield the settings that are set as defaults of all nodes."""
        for name in _selected(self._of_all, names):
            of_all = (one for one in self._synonyms(name) if one.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            yield _of_broker(name, self._of_all[name], of_all)

    def of_topic(self, own: Mapping[str, str], names: Collection[str] | None = None) -> Iterator[DescribedConfig]:
        """Yield the configs of a topic that has its `own` ones, as this node sees them."""

        def inherited(config: str, key: ConfigKey) -> _Inherited:
            value = self._effective.of_topics(config)
            synonyms = self._synonyms(key.synonyms[0]) if key.synonyms else []
            return _Inherited(None if value is None else value_text(value), synonyms)

        return _described(TOPIC_CONFIGS, own, ConfigSource.DYNAMIC_TOPIC_CONFIG, inherited, names)

    def of_group(self, own: Mapping[str, str], names: Collection[str] | None = None) -> Iterator[DescribedConfig]:
        """Yield the configs of a group that has its `own` ones, as this node sees them."""

        def inherited(config: str, key: ConfigKey) -> _Inherited:
            of_all = _of_all_groups(config)
            if of_all is None:
                default = [] if key.default is None else [ConfigSynonym(config, key.default, _DEFAULT)]
                return _Inherited(key.default, default)
            value = self._effective[of_all]
            is_first = isinstance(value, list) and key.type != "LIST"
            return _Inherited(value_text(value[0] if is_first else value), self._synonyms(of_all))

        return _described(GROUP_CONFIGS, own, ConfigSource.DYNAMIC_GROUP_CONFIG, inherited, names)

    def _synonyms(self, name: str) -> list[ConfigSynonym]:
        """The values of a setting and of its synonyms, by precedence, from the first layer with the name itself."""
        found = (
            ConfigSynonym(synonym, value, source)
            for source, settings in self._layers
            for synonym in _synonyms_of(name)
            if (value := settings.get(synonym)) is not None
        )
        return list(dropwhile(lambda one: one.name != name, found))


def client_metrics_configs(own: Mapping[str, str], names: Collection[str] | None = None) -> Iterator[DescribedConfig]:
    """Yield the configs of a client metrics subscription that has its `own` ones."""
    inherited = lambda _, key: _Inherited(key.default, [])  # noqa: E731
    return _described(CLIENT_METRICS_CONFIGS, own, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG, inherited, names)


_DEFAULT: Final = ConfigSource.DEFAULT_CONFIG


class _Inherited(NamedTuple):
    """The inherited value of a config, and its synonyms."""

    value: str | None
    synonyms: Sequence[ConfigSynonym]


def _described(
    keys: Mapping[str, ConfigKey],
    own: Mapping[str, str],
    source: ConfigSource,
    inherited: Callable[[str, ConfigKey], _Inherited],
    names: Collection[str] | None,
) -> Iterator[DescribedConfig]:
    """Yield the configs of a resource: its own, and the inherited ones."""
    for name in _selected({config for config, key in keys.items() if not key.internal or config in own}, names):
        key = keys[name]
        value, synonyms = inherited(name, key)
        if name in own:
            value = parsed_text(key, own[name])
            synonyms = [ConfigSynonym(name, value, source), *synonyms]
        yield DescribedConfig(name=name, key=key, value=value, synonyms=tuple(synonyms))


def _of_broker(name: str, value: str | None, synonyms: Iterable[ConfigSynonym]) -> DescribedConfig:
    key = BROKER_CONFIGS.get(name)
    read_only = key is None or key.update is READ_ONLY
    return DescribedConfig(
        name=name, key=key_of(BROKER, name), value=value, synonyms=tuple(synonyms), read_only=read_only
    )  # fmt: skip


def _selected(known: Iterable[str], names: Collection[str] | None) -> list[str]:
    return sorted({*known} if names is None else {*known} & {*names})


def _of_all_groups(config: str) -> str | None:
    """The broker setting that is the default of a group's config. Source: GroupConfig.brokerSynonym."""
    name = "group.streams.assignors" if config == "streams.assignor.name" else f"group.{config}"
    return name if name in BROKER_CONFIGS else None


def _synonyms_of(name: str) -> Sequence[str]:
    """The settings for the same quantity, including `name`: in other units, or for all listeners."""
    base = base_of(name)
    return in_units(name) if base == name else (name, base)
