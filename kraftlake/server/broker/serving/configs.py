"""DescribeConfigs. Source: kafka.server.ConfigHelper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from kraftlake.image.configurations_image import ConfigResource, ConfigurationsImage
from kraftlake.image.kafka_names import CLUSTER_NAME, AclOperation, ResourceType
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topic_names import problem_of_name
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.runtime.java_values import parse_integer
from kraftlake.server.broker.config_descriptions import (
    DEFAULT,
    BrokerConfigs,
    Configured,
    Described,
    described,
    selected,
)
from kraftlake.server.broker.effective_settings import parsed_text, value_text
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import BROKER_CONFIGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_SOURCES: Final = {ConfigType.TOPIC: 1, ConfigType.CLIENT_METRICS: 7, ConfigType.GROUP: 8}
"""Kafka's numbers for a resource's own configs as the source of a value."""
_Found = Iterable[Any] | tuple[ErrorCode, str]


class _Fallback(NamedTuple):
    """The inherited value of a config, and its source."""

    value: str | None
    synonyms: Sequence[Described]


class _Cache(Protocol):
    @property
    def image(self) -> MetadataImage: ...

    def contains(self, topic: str) -> bool: ...


class ConfigsContext(Protocol):
    """The state of the cluster and the rules of authorization that the config handlers read."""

    @property
    def broker_id(self) -> int:
        """The node's id."""

    @property
    def cache(self) -> _Cache:
        """The newest image."""

    @property
    def authorization(self) -> Authorization:
        """The rules of authorization."""


class DescribeConfigsHandler:
    """Answers DescribeConfigs for topics, groups, client metrics, and the node's own configs."""

    def __init__(self, context: ConfigsContext, config: Configured) -> None:
        self._context = context
        self._config = config

    def __call__(self, request: Request) -> Any:
        """Answer a DescribeConfigs request."""
        module, context = request.module, self._context
        describe: Mapping[int, Callable[[Request, Any, ConfigurationsImage], _Found]] = {
            ConfigType.TOPIC: self._topic,
            ConfigType.BROKER: self._broker,
            ConfigType.CLIENT_METRICS: self._client_metrics,
            ConfigType.GROUP: self._group,
        }
        image = context.cache.image.configs
        results = []
        for resource in request.body.resources:
            kind = int(resource.resource_type)
            known = describe.get(kind)
            found: _Found
            if known is None:
                found = (ErrorCode.INVALID_REQUEST, f"Resources of type {kind} are not described here.")
            else:
                found = known(request, resource, image)
            error, message = ErrorCode.NONE, None
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
        return response_to(request, results=tuple(results))

    def _topic(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name = str(resource.resource_name)
        if not self._allows(request, ResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
        if (problem := problem_of_name(name)) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, problem
        if not self._context.cache.contains(name):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}."
        broker = BrokerConfigs(self._config, image)

        def fallback(config: str, key: ConfigKey) -> _Fallback:
            value = broker.effective.of_topics(config)
            synonyms = broker.synonyms(key.synonyms[0]) if key.synonyms else []
            return _Fallback(None if value is None else value_text(value), synonyms)

        return _described(request, resource, image, TOPIC_CONFIGS, fallback)

    def _group(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name = str(resource.resource_name)
        if not self._allows(request, ResourceType.GROUP, name):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."
        if not name:
            return ErrorCode.INVALID_REQUEST, "Give the name of a group."
        broker = BrokerConfigs(self._config, image)

        def fallback(config: str, key: ConfigKey) -> _Fallback:
            of_all = _of_all_groups(config)
            if of_all is None:
                default = [] if key.default is None else [Described(config, key.default, DEFAULT)]
                return _Fallback(key.default, default)
            value = broker.effective[of_all]
            is_first = isinstance(value, list) and key.type != "LIST"
            return _Fallback(value_text(value[0] if is_first else value), broker.synonyms(of_all))

        return _described(request, resource, image, GROUP_CONFIGS, fallback)

    def _client_metrics(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name = str(resource.resource_name)
        if not self._allows_on_cluster(request):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
        if not name:
            return ErrorCode.INVALID_REQUEST, "Give the name of a subscription."
        fallback = lambda _, key: _Fallback(key.default, [])  # noqa: E731
        return _described(request, resource, image, CLIENT_METRICS_CONFIGS, fallback)

    def _broker(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name, own_id = str(resource.resource_name), self._context.broker_id
        if not self._allows_on_cluster(request):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
        configs = BrokerConfigs(self._config, image)
        if not name:
            return configs.described_of_all(request.module, resource, with_synonyms=request.body.include_synonyms)
        if not is_node_id(name, own_id):
            reason = f"This is broker {own_id}, which does not know the configs of broker {name}."
            return ErrorCode.INVALID_REQUEST, reason
        return configs.described(request.module, resource, with_synonyms=request.body.include_synonyms)

    def _allows(self, request: Request, kind: ResourceType, name: str) -> bool:
        return self._context.authorization.allows(request.peer, AclOperation.DESCRIBE_CONFIGS, kind, name)

    def _allows_on_cluster(self, request: Request) -> bool:
        return self._allows(request, ResourceType.CLUSTER, CLUSTER_NAME)


def is_node_id(name: str, node_id: int) -> bool:
    """Whether the name of a resource is a node id."""
    try:
        return parse_integer(name, 32) == node_id
    except ValueError:
        return False


def _of_all_groups(config: str) -> str | None:
    """The broker setting that is the default of a group's config. Source: GroupConfig.brokerSynonym."""
    name = "group.streams.assignors" if config == "streams.assignor.name" else f"group.{config}"
    return name if name in BROKER_CONFIGS else None


def _described(
    request: Request,
    resource: Any,
    image: ConfigurationsImage,
    keys: Mapping[str, ConfigKey],
    fallback: Callable[[str, ConfigKey], _Fallback],
) -> Iterator[Any]:
    """Yield the configs of a resource: its own, and the inherited ones."""
    kind = ConfigType(int(resource.resource_type))
    own = image.config_map(ConfigResource(kind, str(resource.resource_name)))
    for name in selected({config for config, key in keys.items() if not key.internal or config in own}, resource):
        key = keys[name]
        value, synonyms = fallback(name, key)
        if name in own:
            value = parsed_text(key, own[name])
            synonyms = [Described(name, value, _SOURCES[kind]), *synonyms]
        yield described(
            request.module, name, key, value, synonyms, with_synonyms=request.body.include_synonyms
        )  # fmt: skip
