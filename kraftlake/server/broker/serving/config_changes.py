"""Changes of configs: the checks of the broker that receives them, before the active controller applies them.

Source: kafka.server.ConfigAdminManager.preprocess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import attrs

from kraftlake.controller.configs.alter_configs import OPERATIONS, ConfigOperation, OpType, altered_value
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig
from kraftlake.publisher.dynamic_configs import ConfigType
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.reconfigurations import problem_of_change
from kraftlake.server.broker.serving.configs import ConfigsContext, is_node_id
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import encoded_request, response_in


class ConfigChangesHandler:
    """Answers AlterConfigs and IncrementalAlterConfigs: refuses invalid changes, and forwards the rest."""

    def __init__(self, context: ConfigsContext, config: BrokerConfig, forwarding: ForwardingManager) -> None:
        self._context = context
        self._config = config
        self._forwarding = forwarding

    def __call__(self, request: Request) -> None:
        """Answer a request."""
        resources = request.body.resources
        counts = Counter((one.resource_type, one.resource_name) for one in resources)
        refused: list[tuple[Any, ApiError]] = []
        taken = []
        for one in resources:
            is_twice = counts[one.resource_type, one.resource_name] > 1
            problem = _invalid("Each resource may be named once.") if is_twice else self._problem(request, one)
            taken.append(one) if problem is None else refused.append((one, problem))
        if not refused:
            self._forwarding(request)
            return
        answers = tuple(
            request.module.AlterConfigsResourceResponse(
                error_code=problem.error, error_message=problem.message, resource_type=one.resource_type,
                resource_name=one.resource_name,
            )
            for one, problem in refused
        )  # fmt: skip
        if not taken:
            self._answer(request, answers)
            return
        body = replace(request.body, resources=tuple(taken))
        correlation = REQUEST_HEADER.unpack_from(request.frame)[2]
        frame = encoded_request(body, correlation=correlation)

        def respond(answer: bytes | None) -> None:
            if answer is None:
                request.close()
            else:
                self._answer(request, (*response_in(frame, answer).responses, *answers))

        self._forwarding(attrs.evolve(request, body=body, frame=frame, respond=respond))

    def _answer(self, request: Request, answers: tuple[Any, ...]) -> None:
        request.answer(response_to(request, responses=answers))

    def _problem(self, request: Request, resource: Any) -> ApiError | None:
        """The error of a resource's changes; None if they are valid."""
        names = [one.name for one in resource.configs]
        if len(names) != len(set(names)):
            return _invalid("Each config may be named once.")
        for one in resource.configs:
            if one.value is None and _operation(one) != OpType.DELETE.value:
                return _invalid(f"{one.name} has no value.")
        kind = int(resource.resource_type)
        if kind == ConfigType.BROKER:
            return self._problem_of_settings(request, resource)
        return None if kind in ConfigType.__members__.values() else _invalid(f"Type {kind} has no configs here.")

    def _problem_of_settings(self, request: Request, resource: Any) -> ApiError | None:
        name, context = str(resource.resource_name), self._context
        if not context.authorization.allows_on_cluster(request, AclOperation.ALTER_CONFIGS):
            reason = f"{request.peer.principal} may not alter these configs."
            return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
        if name and not is_node_id(name, context.broker_id):
            return _invalid(f"This is broker {context.broker_id}: ask broker {name} to change its configs.")
        node = DynamicBrokerConfig.of(self._config.static_settings, context.broker_id, context.cache.image.configs)
        before, of = node.own if name else node.of_all, ConfigResource(ConfigType.BROKER, name)
        try:
            settings = (
                _altered(of, resource.configs, before)
                if hasattr(request.module, "IncrementalAlterConfigsResponse")
                else {one.name: one.value for one in resource.configs}
            )
        except ControllerApiError as fault:
            return fault.api_error
        problem = problem_of_change(node, settings, of_all=not name)
        return None if problem is None else _invalid(problem)


def _altered(resource: ConfigResource, changes: Any, before: Mapping[str, str]) -> dict[str, str]:
    """Return the settings after the changes of IncrementalAlterConfigs. Raises ControllerApiError."""
    after = dict(before)
    for one in changes:
        operation = OPERATIONS.get(_operation(one))
        if operation is None:
            raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"There is no operation {_operation(one)}.")
        value = altered_value(resource, one.name, after.pop(one.name, None), ConfigOperation(operation, one.value))
        if value is not None:
            after[one.name] = value
    return after


def _operation(one: Any) -> int:
    return int(getattr(one, "config_operation", OpType.SET.value))


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)
