"""Changes of configs: what the broker that is asked checks of them, before the active controller makes them.

Source: kafka.server.ConfigAdminManager.preprocess.
"""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import attrs
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from kraftlake.controller import OpType
from kraftlake.protocol import REQUEST_HEADER
from kraftlake.publisher import ConfigType
from kraftlake.runtime import UsageError
from kraftlake.server.broker.broker_config import (
    DYNAMIC_SETTINGS,
    BrokerConfig,
    check_dynamic_setting,
    default_settings,
)
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import AT_ONCE, of_version, response_in

_FIXED: Final = frozenset(
    {"broker.id", "log.dir", "log.dirs", "node.id", "process.roles", *(default_settings().keys() - DYNAMIC_SETTINGS)}
)
"""Settings that never change while a broker runs."""


class ConfigChangesHandler:
    """Answers AlterConfigs and IncrementalAlterConfigs: refuses what is wrong, and passes the rest on."""

    def __init__(self, config: BrokerConfig, forwarding: ForwardingManager) -> None:
        self._config = config
        self._forwarding = forwarding

    def __call__(self, request: Request) -> None:
        """Answer a request."""
        resources = request.body.resources
        counts = Counter((one.resource_type, one.resource_name) for one in resources)
        refused: list[tuple[Any, str]] = []
        taken = []
        for one in resources:
            is_twice = counts[one.resource_type, one.resource_name] > 1
            problem = "Each resource may be named once." if is_twice else self._problem(one)
            taken.append(one) if problem is None else refused.append((one, problem))
        if not refused:
            self._forwarding(request)
            return
        answers = tuple(
            request.module.AlterConfigsResourceResponse(
                error_code=ErrorCode.invalid_request, error_message=problem, resource_type=one.resource_type,
                resource_name=one.resource_name,
            )
            for one, problem in refused
        )  # fmt: skip
        if not taken:
            self._answer(request, answers)
            return
        body = replace(request.body, resources=tuple(taken))
        frame = _frame_of(request, body)

        def respond(answer: bytes | None) -> None:
            if answer is None:
                request.close()
            else:
                self._answer(request, (*response_in(frame, answer).responses, *answers))

        self._forwarding(attrs.evolve(request, body=body, frame=frame, respond=respond))

    def _answer(self, request: Request, answers: tuple[Any, ...]) -> None:
        kind = getattr(request.module, "IncrementalAlterConfigsResponse", None) or request.module.AlterConfigsResponse
        request.answer(of_version(kind, throttle_time=AT_ONCE, responses=answers))

    def _problem(self, resource: Any) -> str | None:
        """What is wrong with the changes of a resource."""
        names = [one.name for one in resource.configs]
        if len(names) != len(set(names)):
            return "Each config may be named once."
        for one in resource.configs:
            if one.value is None and not _deletes(one):
                return f"{one.name} has no value."
        kind, name = int(resource.resource_type), str(resource.resource_name)
        if kind == ConfigType.BROKER:
            if name not in ("", str(self._config.broker_id)):
                return f"This is broker {self._config.broker_id}: ask broker {name} to change its configs."
            return next(filter(None, map(_problem_of_setting, resource.configs)), None)
        return None if kind in ConfigType.__members__.values() else f"Resources of type {kind} have no configs here."


def _problem_of_setting(one: Any) -> str | None:
    if one.name in _FIXED:
        return f"{one.name} can't be changed while the broker runs: change its properties file."
    if not _deletes(one):
        try:
            check_dynamic_setting(one.name, one.value)
        except UsageError as problem:
            return str(problem)
    return None


def _deletes(one: Any) -> bool:
    return int(getattr(one, "config_operation", OpType.SET.value)) == OpType.DELETE.value


def _frame_of(request: Request, body: Any) -> bytes:
    """The request with another body."""
    key, version, correlation, _ = REQUEST_HEADER.unpack_from(request.frame)
    frame = io.BytesIO()
    frame.write(REQUEST_HEADER.pack(key, version, correlation, -1) + (b"\0" if body.__flexible__ else b""))
    entity_writer(type(body))(frame, body)
    return frame.getvalue()
