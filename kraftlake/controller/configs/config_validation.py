"""Validation of the configs of a resource: names, values, and combinations that Kafka refuses.

Source: kafka.server.ControllerConfigurationValidator, LogConfig.validate, GroupConfig and ClientMetricsConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.client_metrics_configs import (
    INTERVAL,
    LONGEST_INTERVAL,
    MATCH,
    SHORTEST_INTERVAL,
    problem_of_match,
)
from kraftlake.controller.configs.group_configs import problem_of_group
from kraftlake.controller.configs.topic_combinations import problem_of_topic
from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource
from kraftlake.image.topics.topic_names import problem_of_name
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.runtime.java_values import parse_integer
from kraftlake.settings.tables import CONFIGS


def is_list(resource: ConfigResource, name: str) -> bool:
    """Whether a config of a topic or broker is a list, as required by APPEND and SUBTRACT.

    The schema in Kafka's controller has no definitions of groups and client metrics
    (kafka.server.KafkaRaftServer.configSchema, KafkaConfigSchema.isSplittable).
    """
    key = CONFIGS[resource.type].get(name) if resource.type in (BROKER_RESOURCE, TOPIC_RESOURCE) else None
    return key is not None and key.type == "LIST"


def default_list(resource: ConfigResource, name: str) -> str | None:
    """The default of a list, or None (KafkaConfigSchema.getDefault)."""
    return CONFIGS[resource.type][name].default


def validate_configs(
    node: ControllerConfig, resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Raise ControllerApiError if the resource's configs `after` the change are invalid."""
    match resource.type:
        case 2:
            _check_name(resource, "Topics have")
            problem = problem_of_name(resource.name)
            if problem is not None:
                raise ControllerApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            _refuse("topic", problem_of_topic(node, before, _parsed("topic", resource.type, after)))
        case 4:
            _check_broker_name(resource.name)
        case 16:
            _check_name(resource, "Client metrics have")
            _validate_client_metrics(resource.type, after)
        case 32:
            _check_name(resource, "Groups have")
            _refuse("group", problem_of_group(node, _parsed("group", resource.type, after)))
        case _:
            raise ControllerApiError(
                ErrorCode.INVALID_REQUEST, f"A resource of type {resource.type_name} has no configs here."
            )


def _check_name(resource: ConfigResource, subject: str) -> None:
    if not resource.name:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"{subject} no default resource.")


def _check_broker_name(name: str) -> None:
    try:
        known = not name or parse_integer(name, 32) >= 0
    except ValueError:
        known = False
    if not known:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is no node id.")


def _parsed(
    kind: str, number: int, after: Mapping[str, str], unknown: ErrorCode = ErrorCode.INVALID_CONFIG
) -> dict[str, Any]:
    keys = CONFIGS[number]
    for name in after:
        if name not in keys:
            raise ControllerApiError(unknown, f"There is no {kind} config {name!r}.")
    parsed = {}
    for name, value in after.items():
        try:
            parsed[name] = keys[name].parse(value)
        except ValueError as problem:
            raise ControllerApiError(
                ErrorCode.INVALID_CONFIG, f"The {kind} config {name} can't have this value: {problem}."
            ) from None
    return parsed


def _refuse(kind: str, problem: str | None) -> None:
    if problem is not None:
        raise ControllerApiError(ErrorCode.INVALID_CONFIG, f"The {kind} can't have these configs: {problem}.")


def _validate_client_metrics(kind: int, after: Mapping[str, str]) -> None:
    parsed = _parsed("client metrics", kind, after, unknown=ErrorCode.INVALID_REQUEST)
    if not SHORTEST_INTERVAL <= parsed.get(INTERVAL, SHORTEST_INTERVAL) <= LONGEST_INTERVAL:
        raise ControllerApiError(
            ErrorCode.INVALID_REQUEST, f"{INTERVAL} is not between {SHORTEST_INTERVAL} and {LONGEST_INTERVAL}."
        )
    _refuse("subscription", problem_of_match(parsed.get(MATCH, [])))
