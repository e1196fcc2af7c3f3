"""What a node says of configs: its own settings, and those of topics and groups, which fall back on them.

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
"""Kafka's number of a type of resource that has no dynamic configs."""
DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
"""Kafka's numbers of what a value comes from."""
_TYPES: Final = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""In the order of Kafka's numbers, which begin at 1; 0 is a type that is not known."""
_IN_UNITS: Final = {
    name: key.synonyms
    for key in TOPIC_CONFIGS.values()
    for name in key.synonyms
    if name != "log.flush.scheduler.interval.ms"
}
"""The settings of the same thing by the name of each, the finest unit first."""


class Described(NamedTuple):
    """A value of a config: what it is called where it was set, and what it comes from."""

    name: str
    value: str | None
    source: int


def with_own_configs(frame: bytes, answer: bytes, config: BrokerConfig, image: ConfigurationsImage) -> bytes:
    """The answer of another broker to a request, with this broker's configs where they were asked for.

    Where the client may ask, the other broker says INVALID_REQUEST of them: it knows its own alone. Raises as
    `request_in`.
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
        """Its node id."""

    @property
    def static_settings(self) -> Mapping[str, str]:
        """Its settings by Kafka's names, as a property file has them."""


class BrokerConfigs:
    """The settings of a broker, or another node, by what they come from."""

    def __init__(self, config: Configured, image: ConfigurationsImage) -> None:
        node = DynamicConfig.of(config.static_settings, config.broker_id, image)
        self.effective = node.effective
        self._of_all = node.of_all
        self._tiers: tuple[tuple[int, Mapping[str, str | None]], ...] = (
            (DYNAMIC, node.own), (DYNAMIC_DEFAULT, node.of_all), (STATIC, node.static),
            (DEFAULT, {name: key.default for name, key in BROKER_CONFIGS.items() if name not in DYNAMIC_ONLY}),
        )  # fmt: skip

    def described(self, module: Any, resource: Any, *, with_synonyms: bool) -> Iterator[Any]:
        """The settings that a resource of a request asks for, as kio's `module` of the response declares them."""
        shown = {name for name, key in BROKER_CONFIGS.items() if not key.internal}
        for name in selected({*shown, *self.effective.values}, resource):
            yield described(
                module, name, key_of(BROKER, name), setting_text(self.effective, name), self.synonyms(name),
                read_only=_is_read_only(name), with_synonyms=with_synonyms,
            )  # fmt: skip

    def described_of_all(self, module: Any, resource: Any, *, with_synonyms: bool) -> Iterator[Any]:
        """What is set for all brokers alone."""
        for name in selected({*self._of_all}, resource):
            of_all = [one for one in self.synonyms(name) if one.source == DYNAMIC_DEFAULT]
            yield described(
                module, name, key_of(BROKER, name), self._of_all[name], of_all, read_only=_is_read_only(name),
                with_synonyms=with_synonyms,
            )  # fmt: skip

    def synonyms(self, name: str) -> list[Described]:
        """What a setting is set to, and would be set to without that; from the first place that has its name on."""
        found = (
            Described(synonym, value, source)
            for source, settings in self._tiers
            for synonym in _synonyms_of(name)
            if (value := settings.get(synonym)) is not None
        )
        return list(dropwhile(lambda one: one.name != name, found))


def selected(names: set[str], resource: Any) -> list[str]:
    """The names that a resource of a request asks for, all of them where it names none."""
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
    """A config as kio's `module` of the response declares it; what is not known may be a secret."""
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
    """The settings of the same thing, with `name` among them: in other units, or of all listeners."""
    base = base_of(name)
    return _IN_UNITS.get(name, (name,)) if base == name else (name, base)
