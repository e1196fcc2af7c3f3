"""Handlers of changes of dynamic configs. Source: kafka.server.ControllerApis."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Final

from kraftlake.controller.configs.alter_configs import (
    OPERATIONS,
    ConfigOperation,
    OpType,
    incremental_alter_configs,
    legacy_alter_configs,
)
from kraftlake.controller.errors import ApiError
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to

_BROKER_LOGGER: Final = 8


def _change(node: ControllerNode, request: Request) -> Future[Any]:
    resources, answers = _resources(node, request)
    changes: dict[ConfigResource, dict[str, ConfigOperation]] = {}
    for resource, configs in resources.items():
        unknown = [config.name for config in configs if int(config.config_operation) not in OPERATIONS]
        if unknown:
            reason = f"The operation on {unknown[0]} is none of {', '.join(kind.name for kind in OpType)}."
            answers.append((resource, ApiError(ErrorCode.INVALID_REQUEST, reason)))
            continue
        changes[resource] = {
            config.name: ConfigOperation(OPERATIONS[int(config.config_operation)], config.value) for config in configs
        }
    validate_only, forwarded = request.body.validate_only, request.peer.forwarded
    return node.run(
        lambda state: incremental_alter_configs(state, changes, validate_only=validate_only, forwarded=forwarded),
        lambda errors: _answer(request, [*answers, *errors.items()]),
    )


def _replace(node: ControllerNode, request: Request) -> Future[Any]:
    resources, answers = _resources(node, request)
    wanted = {resource: {one.name: one.value for one in configs} for resource, configs in resources.items()}
    validate_only, forwarded = request.body.validate_only, request.peer.forwarded
    return node.run(
        lambda state: legacy_alter_configs(state, wanted, validate_only=validate_only, forwarded=forwarded),
        lambda errors: _answer(request, [*answers, *errors.items()]),
    )


def _resources(
    node: ControllerNode, request: Request
) -> tuple[dict[ConfigResource, Any], list[tuple[ConfigResource, ApiError]]]:
    """Return the configs of each resource that the peer may alter, and the refusals of the others."""
    found: dict[ConfigResource, Any] = {}
    refused: dict[ConfigResource, ApiError] = {}
    for one in request.body.resources:
        resource = ConfigResource(int(one.resource_type), one.resource_name)
        if resource.type == _BROKER_LOGGER:
            refused[resource] = ApiError(ErrorCode.INVALID_REQUEST, "This node has no loggers to configure.")
        elif resource.type not in ConfigType.__members__.values():
            reason = f"Unknown resource type {resource.type}."
            refused[resource] = ApiError(ErrorCode.UNSUPPORTED_VERSION, reason)
        elif resource in found or resource in refused:
            found.pop(resource, None)
            refused[resource] = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
        else:
            found[resource] = one.configs
    for resource in list(found):
        error = _authorized(node, request, resource)
        if error.is_failure:
            refused[resource] = error
            del found[resource]
    return found, list(refused.items())


def _authorized(node: ControllerNode, request: Request, resource: ConfigResource) -> ApiError:
    of_type: Mapping[int, tuple[ResourceType, ErrorCode]] = {
        ConfigType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ConfigType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    }
    if resource.type in of_type:
        kind, error = of_type[resource.type]
        allowed = node.authorization.allows(request, AclOperation.ALTER_CONFIGS, kind, resource.name)
    else:
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        allowed = node.authorization.allows_on_cluster(request, AclOperation.ALTER_CONFIGS)
    return ApiError.NONE if allowed else ApiError(error, f"{request.peer.principal} may not alter these configs.")


def _answer(request: Request, answers: list[tuple[ConfigResource, ApiError]]) -> Any:
    return response_to(
        request,
        responses=tuple(
            request.module.AlterConfigsResourceResponse(
                error_code=error.error, error_message=error.message, resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error in answers
        ),
    )  # fmt: skip


CONFIG_HANDLERS: Final[Handlers] = {
    "incremental_alter_configs": _change,
    "alter_configs": _replace,
}
"""The handlers of IncrementalAlterConfigs and AlterConfigs."""
