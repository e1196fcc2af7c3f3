"""Descriptions of a node's configs: its own settings, and those of topics and groups, which fall back on them.

Source: kafka.server.ConfigHelper, org.apache.kafka.server.config.DynamicBrokerConfig (brokerConfigSynonyms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import dropwhile
from typing import Any, Final, NamedTuple, Protocol

from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.dynamic_config import DynamicConfig
from kraftlake.server.broker.effective_settings import setting_text
from kraftlake.server.requests.messages import api_of, encoded_answer, of_version, request_in, response_in
from kraftlake.settings.config_key import READ_ONLY, ConfigKey
from kraftlake.settings.tables import BROKER, BROKER_CONFIGS, DYNAMIC_ONLY, base_of, key_of
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_BROKER_LOGGER: Final = 8
"""Kafka's number of a resource type without dynamic configs."""
DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
"""Kafka's numbers for the source of a value."""
_TYPES: Final = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""Types in the order of Kafka's numbers, which begin at 1; 0 is an unknown type."""
_IN_UNITS: Final = {
    name: key.synonyms
    for key in TOPIC_CONFIGS.values()
    for name in key.synonyms
    if name != "log.flush.scheduler.interval.ms"
}
"""All settings for the same quantity in different units, by the name of each, the finest unit first."""


class Described(NamedTuple):
    """A value of a config: its name where it was set, and its source."""

    name: str
    value: str | None
    source: int


def with_own_configs(frame: bytes, answer: bytes, config: BrokerConfig, image: ConfigurationsImage) -> bytes:
    """Replace the configs of this broker in another broker's answer, where they were requested.

    If the client is authorized, the other broker answers INVALID_REQUEST for them: a broker knows only its own configs.
    Raises as `request_in`.
    """
    asked = request_in(frame) if api_of(frame) == "describe_configs" else None
    if asked is None:
        return answer
    own = {
        one.resource_type: one
        for one in asked.resources
        if one.resource_type in (ConfigType.BROKER, _BROKER_LOGGER) and one.resource_name == str(config.broker_id)
    }
    if not own:
        return answer
    response = response_in(frame, answer)
    module = import_module(type(response).__module__)
    results = []
    for result in response.results:
        resource = own.get(result.resource_type) if result.resource_name == str(config.broker_id) else None
        if resource is not None and result.error_code == ErrorCode.INVALID_REQUEST:
            described = BrokerConfigs(config, image).described(module, resource, with_synonyms=asked.include_synonyms)
            configs = tuple(described if resource.resource_type == ConfigType.BROKER else ())
            result = replace(result, error_code=ErrorCode.NONE, error_message=None, configs=configs)  # noqa: PLW2901
        results.append(result)
    return encoded_answer(frame, replace(response, results=tuple(results)))


class Configured(Protocol):
    """A node with settings of its own."""

    @property
    def broker_id(self) -> int:
        """The node's id."""

    @property
    def static_settings(self) -> Mapping[str, str]:
        """The node's settings by Kafka's names, as in a property file."""


class BrokerConfigs:
    """The settings of a broker, or another node, by source."""

    def __init__(self, config: Configured, image: ConfigurationsImage) -> None:
        node = DynamicConfig.of(config.static_settings, config.broker_id, image)
        self.effective = node.effective
        self._of_all = node.of_all
        self._tiers: tuple[tuple[int, Mapping[str, str | None]], ...] = (
            (DYNAMIC, node.own), (DYNAMIC_DEFAULT, node.of_all), (STATIC, node.static),
            (DEFAULT, {name: key.default for name, key in BROKER_CONFIGS.items() if name not in DYNAMIC_ONLY}),
        )  # fmt: skip

    def described(self, module: Any, resource: Any, *, with_synonyms: bool) -> Iterator[Any]:
        """Yield the settings that a request's resource selects, in the classes of kio's response `module`."""
        shown = {name for name, key in BROKER_CONFIGS.items() if not key.internal}
        for name in selected({*shown, *self.effective.values}, resource):
            yield described(
                module, name, key_of(BROKER, name), setting_text(self.effective, name), self.synonyms(name),
                read_only=_is_read_only(name), with_synonyms=with_synonyms,
            )  # fmt: skip

    def described_of_all(self, module: Any, resource: Any, *, with_synonyms: bool) -> Iterator[Any]:
        """Yield the configs that are set as defaults for all brokers."""
        for name in selected({*self._of_all}, resource):
            of_all = [one for one in self.synonyms(name) if one.source == DYNAMIC_DEFAULT]
            yield described(
                module, name, key_of(BROKER, name), self._of_all[name], of_all, read_only=_is_read_only(name),
                with_synonyms=with_synonyms,
            )  # fmt: skip

    def synonyms(self, name: str) -> list[Described]:
        """The values of a setting and of its synonyms, by precedence, from the first place with the name itself."""
        found = (
            Described(synonym, value, source)
            for source, settings in self._tiers
            for synonym in _synonyms_of(name)
            if (value := settings.get(synonym)) is not None
        )
        return list(dropwhile(lambda one: one.name != name, found))


def selected(names: set[str], resource: Any) -> list[str]:
    """The names that a request's resource selects; all names if it lists none."""
    return sorted(names & {*resource.configuration_keys} if resource.configuration_keys else names)


def described(
    module: Any,
    name: str,
    key: ConfigKey | None,
    value: str | None,
    synonyms: Sequence[Described],
    *,
    with_synonyms: bool,
    read_only: bool = False,
) -> Any:
    """Return a config in the class of kio's response `module`; an unknown config may be a secret."""
    is_secret = key is None or key.is_sensitive
    return of_version(
        module.DescribeConfigsResourceResult,
        name=name, value=None if is_secret or key is None else value, read_only=read_only,
        config_source=synonyms[0].source if synonyms else DEFAULT, is_sensitive=is_secret, documentation=None,
        synonyms=tuple(
            module.DescribeConfigsSynonym(name=one.name, value=None if is_secret else one.value, source=one.source)
            for one in (synonyms if with_synonyms else ())
        ),
        config_type=0 if key is None else _TYPES.index(key.type) + 1,
    )  # fmt: skip


def _is_read_only(name: str) -> bool:
    key = BROKER_CONFIGS.get(name)
    return key is None or key.update is READ_ONLY


def _synonyms_of(name: str) -> Sequence[str]:
    """The settings for the same quantity, including `name`: in other units, or for all listeners."""
    base = base_of(name)
    return _IN_UNITS.get(name, (name,)) if base == name else (name, base)
