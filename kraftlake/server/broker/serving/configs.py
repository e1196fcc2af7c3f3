"""DescribeConfigs. Source: kafka.server.ConfigHelper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import dropwhile
from typing import Any, Final, NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from kraftlake.controller import in_milliseconds
from kraftlake.image import (
    AclOperation,
    ConfigResource,
    ConfigurationsImage,
    MetadataImage,
    ResourceType,
    problem_of_name,
)
from kraftlake.publisher import ConfigType
from kraftlake.records import is_sensitive_config
from kraftlake.server.broker.config_descriptions import DEFAULT, BrokerConfigs, Configured
from kraftlake.server.requests.authorization import CLUSTER_NAME, Authorization
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import AT_ONCE, of_version
from kraftlake.settings import TOPIC_CONFIGS, ConfigKey

_TOPIC: Final = 1
"""Kafka's number of the dynamic configs of a topic, as what a value comes from."""
_TYPES: Final = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "LONG": 5, "DOUBLE": 6, "LIST": 7}
_INTERNAL: Final = "internal."


class _Value(NamedTuple):
    """A value of a config: what it is called where it was set, and what it comes from."""

    name: str
    value: str
    source: int


class _Cache(Protocol):
    @property
    def image(self) -> MetadataImage: ...

    def contains(self, topic: str) -> bool: ...


class ConfigsContext(Protocol):
    """What is known of the cluster, and who may ask for it."""

    @property
    def broker_id(self) -> int:
        """The node's id."""

    @property
    def cache(self) -> _Cache:
        """The newest image."""

    @property
    def authorization(self) -> Authorization:
        """Who may do what."""


class DescribeConfigsHandler:
    """The configs of topics, and of this broker, or controller; clients ask a node for its own."""

    def __init__(self, context: ConfigsContext, config: Configured) -> None:
        self._context = context
        self._config = config

    def __call__(self, request: Request) -> None:
        """Answer a DescribeConfigs request."""
        module, context = request.module, self._context
        describe: Mapping[int, Callable[[Request, Any, ConfigurationsImage], Iterable[Any] | tuple[ErrorCode, str]]] = {
            ConfigType.TOPIC: self._topic,
            ConfigType.BROKER: self._broker,
        }
        image = context.cache.image.configs
        results = []
        for resource in request.body.resources:
            kind = int(resource.resource_type)
            known = describe.get(kind)
            found: Iterable[Any] | tuple[ErrorCode, str]
            if known is None:
                found = (ErrorCode.invalid_request, f"Resources of type {kind} are not described here.")
            else:
                found = known(request, resource, image)
            error, message = ErrorCode.none, None
            configs: tuple[Any, ...] = ()
            if isinstance(found, tuple):
                error, message = found
            else:
                configs = tuple(found)
            results.append(
                module.DescribeConfigsResult(
                    error_code=error, error_message=message, resource_type=resource.resource_type,
                    resource_name=resource.resource_name, configs=configs,
                )
            )  # fmt: skip
        request.answer(of_version(module.DescribeConfigsResponse, throttle_time=AT_ONCE, results=tuple(results)))

    def _topic(
        self, request: Request, resource: Any, image: ConfigurationsImage
    ) -> Iterable[Any] | tuple[ErrorCode, str]:
        name, context = str(resource.resource_name), self._context
        if not context.authorization.allows(request.peer, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
            return ErrorCode.topic_authorization_failed, "Topic authorization failed."
        if (problem := problem_of_name(name)) is not None:
            return ErrorCode.invalid_topic_exception, problem
        if not context.cache.contains(name):
            return ErrorCode.unknown_topic_or_partition, f"There is no topic {name}."
        own = image.config_map(ConfigResource(ConfigType.TOPIC, name))
        tiers = self._broker_configs(image).tiers
        wanted = resource.configuration_keys
        return [
            _described(request, config, key, list(_values(config, key, own, tiers)))
            for config, key in sorted(TOPIC_CONFIGS.items())
            if (config in wanted if wanted else not config.startswith(_INTERNAL))
        ]

    def _broker(
        self, request: Request, resource: Any, image: ConfigurationsImage
    ) -> Iterable[Any] | tuple[ErrorCode, str]:
        name, context = str(resource.resource_name), self._context
        if not context.authorization.allows(
            request.peer, AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            return ErrorCode.cluster_authorization_failed, "Cluster authorization failed."
        if name not in ("", str(context.broker_id)):
            return (
                ErrorCode.invalid_request,
                f"This is broker {context.broker_id}, which does not know the configs of broker {name}.",
            )
        configs = self._broker_configs(image)
        shown = configs if name else configs.of_all_brokers()
        return list(shown.described(request.module, resource, with_synonyms=request.body.include_synonyms))

    def _broker_configs(self, image: ConfigurationsImage) -> BrokerConfigs:
        return BrokerConfigs(self._config, image)


def _values(
    name: str, key: ConfigKey, own: Mapping[str, str], tiers: Iterable[tuple[int, Mapping[str, str | None]]]
) -> Iterator[_Value]:
    """The values of a topic's config, the one that counts first."""
    if name in own:
        yield _Value(name, own[name], _TOPIC)
    for source, settings in tiers:
        if source == DEFAULT:
            continue
        for synonym in key.synonyms:
            value = settings.get(synonym)
            if value is not None:
                yield _Value(synonym, in_milliseconds(synonym, value), source)
    if key.default is not None:
        yield _Value(key.synonyms[0] if key.synonyms else name, key.default, DEFAULT)


def _told(key: ConfigKey, values: list[_Value]) -> Iterator[_Value]:
    """The values that Kafka tells of: the topic's own, and from the first one under the finest of the names on.

    A setting that has coarser names, too, has its default under one of those.
    """
    yield from (one for one in values if one.source == _TOPIC)
    others = (one for one in values if one.source != _TOPIC and (one.source != DEFAULT or len(key.synonyms) == 1))
    yield from dropwhile(lambda one: one.name != key.synonyms[0], others)


def _described(request: Request, name: str, key: ConfigKey, values: list[_Value]) -> Any:
    module, is_sensitive = request.module, is_sensitive_config(ConfigType.TOPIC, name)
    synonyms: tuple[Any, ...] = ()
    told = list(_told(key, values))
    if request.body.include_synonyms:
        synonyms = tuple(
            module.DescribeConfigsSynonym(name=one.name, value=None if is_sensitive else one.value, source=one.source)
            for one in told
        )
    first = values[0] if values else None
    return of_version(
        module.DescribeConfigsResourceResult,
        name=name,
        value=None if is_sensitive or first is None else first.value,
        read_only=False,
        config_source=told[0].source if told else DEFAULT,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        config_type=_TYPES[key.type],
        documentation=None,
    )
