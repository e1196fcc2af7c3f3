"""DescribeConfigs and ListConfigResources. Source: kafka.server.ConfigHelper, kafka.server.KafkaApis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.configurations_image import ConfigResource, ConfigurationsImage
from kraftlake.image.kafka_names import CLUSTER_NAME, AclOperation, ResourceType
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topic_names import problem_of_name
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.described_configs import DescribedConfig, client_metrics_configs
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.runtime.java_values import parse_integer
from kraftlake.server.broker.config_descriptions import (
    BROKER_LOGGER,
    Configured,
    described,
    node_configs,
    requested,
)
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version

_Found = Iterable[DescribedConfig] | tuple[ErrorCode, str]


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
                configs = tuple(described(module, found, with_synonyms=request.body.include_synonyms))
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
        return node_configs(self._config, image).of_topic(_own(image, ConfigType.TOPIC, name), requested(resource))

    def _group(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name = str(resource.resource_name)
        if not self._allows(request, ResourceType.GROUP, name):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."
        if not name:
            return ErrorCode.INVALID_REQUEST, "Give the name of a group."
        return node_configs(self._config, image).of_group(_own(image, ConfigType.GROUP, name), requested(resource))

    def _client_metrics(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name = str(resource.resource_name)
        if not self._allows_on_cluster(request):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
        if not name:
            return ErrorCode.INVALID_REQUEST, "Give the name of a subscription."
        return client_metrics_configs(_own(image, ConfigType.CLIENT_METRICS, name), requested(resource))

    def _broker(self, request: Request, resource: Any, image: ConfigurationsImage) -> _Found:
        name, own_id = str(resource.resource_name), self._context.broker_id
        if not self._allows_on_cluster(request):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
        configs = node_configs(self._config, image)
        if not name:
            return configs.of_all_nodes(requested(resource))
        if not is_node_id(name, own_id):
            reason = f"This is broker {own_id}, which does not know the configs of broker {name}."
            return ErrorCode.INVALID_REQUEST, reason
        return configs.of_node(requested(resource))

    def _allows(self, request: Request, kind: ResourceType, name: str) -> bool:
        return self._context.authorization.allows(request, AclOperation.DESCRIBE_CONFIGS, kind, name)

    def _allows_on_cluster(self, request: Request) -> bool:
        return self._allows(request, ResourceType.CLUSTER, CLUSTER_NAME)


def list_config_resources(context: ServingContext, request: Request) -> Any:
    """Answer ListConfigResources (KIP-1142): all topics and brokers, and the groups and subscriptions with configs.

    Raises ControllerApiError if the peer may not describe configs, and for an unknown type.
    """
    context.authorization.check_cluster(request, AclOperation.DESCRIBE_CONFIGS)
    cache, module = context.cache, request.module
    known = {*ConfigType, BROKER_LOGGER} if hasattr(request.body, "resource_types") else {ConfigType.CLIENT_METRICS}
    asked = {int(kind) for kind in getattr(request.body, "resource_types", ())} or known
    if not asked <= known:
        unknown = ", ".join(map(str, sorted(asked - known)))
        raise ControllerApiError(ErrorCode.UNSUPPORTED_VERSION, f"There are no resources of type {unknown}.")
    configured = [one for one in cache.image.configs.resource_data if one.type in _LISTED_IF_CONFIGURED]
    found = [(int(one.type), one.name) for one in configured if one.type in asked]
    for kind in (ConfigType.BROKER, BROKER_LOGGER):
        if kind in asked:
            found += [(int(kind), str(one.id)) for one in cache.broker_nodes(request.peer.listener)]
    if ConfigType.TOPIC in asked:
        found += [(int(ConfigType.TOPIC), name) for name in cache.all_topics()]
    resources = tuple(of_version(module.ConfigResource, resource_type=kind, resource_name=name) for kind, name in found)
    return response_to(request, config_resources=resources)


_LISTED_IF_CONFIGURED: Final = {ConfigType.CLIENT_METRICS, ConfigType.GROUP}


def is_node_id(name: str, node_id: int) -> bool:
    """Whether the name of a resource is a node id."""
    try:
        return parse_integer(name, 32) == node_id
    except ValueError:
        return False


def _own(image: ConfigurationsImage, kind: ConfigType, name: str) -> Mapping[str, str]:
    return image.config_map(ConfigResource(kind, name))
