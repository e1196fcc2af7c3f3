"""Descriptions of configs in answers to DescribeConfigs. Source: kafka.server.ConfigHelper."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, Protocol

from kraftlake.image.configurations_image import ConfigurationsImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.described_configs import DescribedConfig, NodeConfigs
from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.requests.messages import api_of, encoded_answer, of_version, request_in, response_in

BROKER_LOGGER: Final = 8
"""Kafka's number of a resource type without dynamic configs."""
_TYPES: Final = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""Types in the order of Kafka's numbers, which begin at 1; 0 is an unknown type."""


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
        if one.resource_type in (ConfigType.BROKER, BROKER_LOGGER) and one.resource_name == str(config.broker_id)
    }
    if not own:
        return answer
    response = response_in(frame, answer)
    module = import_module(type(response).__module__)
    results = []
    for result in response.results:
        resource = own.get(result.resource_type) if result.resource_name == str(config.broker_id) else None
        if resource is not None and result.error_code == ErrorCode.INVALID_REQUEST:
            found = node_configs(config, image).of_node(requested(resource))
            is_of_broker = resource.resource_type == ConfigType.BROKER
            configs = tuple(described(module, found if is_of_broker else (), with_synonyms=asked.include_synonyms))
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


def node_configs(config: Configured, image: ConfigurationsImage) -> NodeConfigs:
    """The configs of a node, or of what inherits from them, in an image."""
    return NodeConfigs(DynamicBrokerConfig.of(config.static_settings, config.broker_id, image))


def requested(resource: Any) -> Collection[str] | None:
    """The names that a request's resource selects; None for all, which it means by an empty list, too."""
    return resource.configuration_keys or None


def described(module: Any, found: Iterable[DescribedConfig], *, with_synonyms: bool) -> Iterator[Any]:
    """Yield configs in the class of kio's response `module`, without the values of secrets."""
    for one in found:
        is_secret = one.is_sensitive
        yield of_version(
            module.DescribeConfigsResourceResult,
            name=one.name, value=None if is_secret else one.value, read_only=one.read_only,
            config_source=one.source, is_sensitive=is_secret, documentation=None,
            synonyms=tuple(
                module.DescribeConfigsSynonym(
                    name=synonym.name, value=None if is_secret else synonym.value, source=synonym.source
                )
                for synonym in (one.synonyms if with_synonyms else ())
            ),
            config_type=0 if one.key is None else _TYPES.index(one.key.type) + 1,
        )  # fmt: skip
