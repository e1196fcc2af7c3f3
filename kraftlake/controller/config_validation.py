"""Whether a resource may have its configs: names, values, and the combinations that Kafka refuses.

Source: kafka.server.ControllerConfigurationValidator, LogConfig.validate, GroupConfig and ClientMetricsConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.config_schema import BROKER_LISTS, TOPIC_CONFIGS, ConfigKey, fallback_topic_config
from kraftlake.controller.errors import ControllerApiError, Errors
from kraftlake.controller.topic_names import problem_of_name
from kraftlake.image import ConfigResource, ConfigurationsImage
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE

CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "consumer.assignment.interval.ms": ConfigKey("INT", "1000", 0),
    "consumer.assignor.offload.enable": ConfigKey("BOOLEAN", "true"),
    "consumer.heartbeat.interval.ms": ConfigKey("INT", "5000", 1),
    "consumer.session.timeout.ms": ConfigKey("INT", "45000", 1),
    "errors.deadletterqueue.copy.record.enable": ConfigKey("BOOLEAN", "false"),
    "errors.deadletterqueue.topic.name": ConfigKey("STRING", ""),
    "share.assignment.interval.ms": ConfigKey("INT", "1000", 0),
    "share.assignor.offload.enable": ConfigKey("BOOLEAN", "true"),
    "share.auto.offset.reset": ConfigKey("STRING", "latest"),
    "share.delivery.count.limit": ConfigKey("INT", "5", 2),
    "share.heartbeat.interval.ms": ConfigKey("INT", "5000", 1),
    "share.isolation.level": ConfigKey("STRING", "read_uncommitted", one_of=("read_committed", "read_uncommitted")),
    "share.partition.max.record.locks": ConfigKey("INT", "2000", 100),
    "share.record.lock.duration.ms": ConfigKey("INT", "30000", 1000),
    "share.renew.acknowledge.enable": ConfigKey("BOOLEAN", "true"),
    "share.session.timeout.ms": ConfigKey("INT", "45000", 1),
    "streams.acceptable.recovery.lag": ConfigKey("LONG", "10000", 0),
    "streams.assignment.interval.ms": ConfigKey("INT", "1000", 0),
    "streams.assignor.name": ConfigKey("STRING", None),
    "streams.assignor.offload.enable": ConfigKey("BOOLEAN", "true"),
    "streams.heartbeat.interval.ms": ConfigKey("INT", "5000", 1),
    "streams.initial.rebalance.delay.ms": ConfigKey("INT", "3000", 0),
    "streams.num.standby.replicas": ConfigKey("INT", "0", 0),
    "streams.num.warmup.replicas": ConfigKey("INT", "2", 0),
    "streams.rack.aware.assignment.tags": ConfigKey("LIST", ""),
    "streams.session.timeout.ms": ConfigKey("INT", "45000", 1),
    "streams.task.offset.interval.ms": ConfigKey("INT", "60000", 1),
}
"""Every config of a group; the bounds that the brokers' own settings give are the brokers' to check."""

CLIENT_METRICS_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "interval.ms": ConfigKey("INT", "300000", 100, 3_600_000),
    "match": ConfigKey("LIST", ""),
    "metrics": ConfigKey("LIST", ""),
}


def is_list(resource: ConfigResource, name: str) -> bool:
    """Whether a config can be appended to and subtracted from."""
    if resource.type == BROKER_RESOURCE:
        return name in BROKER_LISTS
    key = _keys(resource).get(name)
    return key is not None and key.type == "LIST"


def _keys(resource: ConfigResource) -> Mapping[str, ConfigKey]:
    if resource.type == TOPIC_RESOURCE:
        return TOPIC_CONFIGS
    if resource.type == GROUP_RESOURCE:
        return GROUP_CONFIGS
    return CLIENT_METRICS_CONFIGS if resource.type == CLIENT_METRICS_RESOURCE else {}


def validate_configs(
    configs: ConfigurationsImage, node: ControllerConfig, resource: ConfigResource, after: Mapping[str, str]
) -> None:
    """Refuse a resource that can't have configs, or can't have those that it would have `after` the change."""
    match resource.type:
        case 2:
            _validate_name(resource, "topic", problem_of_name(resource.name))
            _validate_values("topic", resource, after)
            _validate_topic(configs, node, after)
        case 4:
            _validate_broker_name(resource.name)
        case 16:
            if not resource.name:
                raise ControllerApiError(Errors.INVALID_REQUEST, "A client metrics subscription has a name.")
            _validate_values("client metrics", resource, after)
        case 32:
            if not resource.name:
                raise ControllerApiError(Errors.INVALID_REQUEST, "Groups have no default resource.")
            _validate_values("group", resource, after)
        case _:
            raise ControllerApiError(
                Errors.INVALID_REQUEST, f"A resource of type {resource.type_name} has no configs here."
            )


def _validate_name(resource: ConfigResource, kind: str, problem: str | None) -> None:
    if not resource.name:
        raise ControllerApiError(Errors.INVALID_REQUEST, f"There is no default {kind} resource.")
    if problem is not None:
        raise ControllerApiError(Errors.INVALID_TOPIC_EXCEPTION, problem)


def _validate_broker_name(name: str) -> None:
    if name and not name.removeprefix("+").isdecimal():
        raise ControllerApiError(Errors.INVALID_REQUEST, f"{name!r} is no node id.")


def _validate_values(kind: str, resource: ConfigResource, after: Mapping[str, str]) -> None:
    keys = _keys(resource)
    for name, value in after.items():
        key = keys.get(name)
        if key is None:
            # Kafka answers INVALID_REQUEST for client metrics and INVALID_CONFIG for the others
            error = Errors.INVALID_REQUEST if resource.type == CLIENT_METRICS_RESOURCE else Errors.INVALID_CONFIG
            raise ControllerApiError(error, f"There is no {kind} config {name!r}.")
        problem = key.problem(value)
        if problem is not None:
            error = Errors.INVALID_REQUEST if resource.type == CLIENT_METRICS_RESOURCE else Errors.INVALID_CONFIG
            raise ControllerApiError(error, f"The {kind} config {name} can't have this value: {problem}.")


def _validate_topic(configs: ConfigurationsImage, node: ControllerConfig, after: Mapping[str, str]) -> None:
    """The combinations that LogConfig.validate refuses."""

    def value(name: str) -> str:
        found = after.get(name, fallback_topic_config(configs, node, name))
        assert found is not None, "every one of these has a default"
        return found

    problem = None
    if int(value("min.compaction.lag.ms")) > int(value("max.compaction.lag.ms")):
        problem = "min.compaction.lag.ms is above max.compaction.lag.ms"
    elif value("remote.storage.enable").strip().lower() == "true":
        problem = "remote.storage.enable needs remote storage, which this cluster has not"
    if problem is not None:
        raise ControllerApiError(Errors.INVALID_CONFIG, f"The configs don't go together: {problem}.")
