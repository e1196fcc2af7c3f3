"""What a broker that serves nobody says of its own configs: clients ask that broker alone.

Source: kafka.server.ConfigHelper, org.apache.kafka.server.config.DynamicBrokerConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from importlib import import_module
from itertools import dropwhile
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from kraftlake.image import ConfigResource, ConfigurationsImage
from kraftlake.publisher import ConfigType
from kraftlake.records import is_sensitive_config
from kraftlake.server.broker.broker_config import DYNAMIC_SETTINGS, BrokerConfig, default_settings, synonyms_of
from kraftlake.server.requests.messages import api_of, encoded_answer, of_version, request_in, response_in

_BROKER_LOGGER: Final = 8
"""Kafka's number of a type of resource that has no dynamic configs."""
DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
"""Kafka's numbers of what a value comes from."""


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
        if resource is not None and result.error_code is ErrorCode.invalid_request:
            described = BrokerConfigs(config, image).described(module, resource, with_synonyms=asked.include_synonyms)
            configs = tuple(described if resource.resource_type == ConfigType.BROKER else ())
            result = replace(result, error_code=ErrorCode.none, error_message=None, configs=configs)  # noqa: PLW2901
        results.append(result)
    return encoded_answer(frame, replace(response, results=tuple(results)))


class Configured(Protocol):
    """A node with settings of its own."""

    @property
    def broker_id(self) -> int:
        """Its node id."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Its settings by Kafka's names."""


class BrokerConfigs:
    """The settings of a broker, or another node, by what they come from, the strongest first."""

    def __init__(self, config: Configured, image: ConfigurationsImage) -> None:
        own, all_ = (image.config_map(ConfigResource(ConfigType.BROKER, name)) for name in (str(config.broker_id), ""))
        self._dynamic = {*own, *all_}
        self.tiers: list[tuple[int, Mapping[str, str | None]]] = [
            (DYNAMIC, own), (DYNAMIC_DEFAULT, all_), (STATIC, config.settings), (DEFAULT, default_settings()),
        ]  # fmt: skip
        """The settings that are set or known, by what they come from."""

    def of_all_brokers(self) -> BrokerConfigs:
        """What is set for all brokers alone."""
        made = copy(self)
        made.tiers = [(source, settings) for source, settings in self.tiers if source == DYNAMIC_DEFAULT]
        return made

    def described(self, module: Any, resource: Any, *, with_synonyms: bool) -> Iterable[Any]:
        """The configs that a resource of a request asks for, as kio's `module` of the response declares them."""
        names = {name for _, settings in self.tiers for name in settings}
        for name in sorted(names & set(resource.configuration_keys) if resource.configuration_keys else names):
            synonyms = list(self._synonyms(module, name))
            yield of_version(
                module.DescribeConfigsResourceResult,
                name=name, value=synonyms[0].value if synonyms else None,
                read_only=name not in DYNAMIC_SETTINGS and name not in self._dynamic,
                config_source=synonyms[0].source if synonyms else DEFAULT,
                is_sensitive=is_sensitive_config(ConfigType.BROKER, name), documentation=None,
                synonyms=tuple(synonyms) if with_synonyms else (),
            )  # fmt: skip

    def _synonyms(self, module: Any, name: str) -> Iterable[Any]:
        """What the config is set to and would be set to without that, from the first place that has its name on."""
        found = (
            module.DescribeConfigsSynonym(
                name=synonym, value=None if is_sensitive_config(ConfigType.BROKER, name) else value, source=source
            )
            for source, settings in self.tiers
            for synonym in synonyms_of(name)
            if (value := settings.get(synonym)) is not None
        )
        return dropwhile(lambda one: one.name != name, found)
