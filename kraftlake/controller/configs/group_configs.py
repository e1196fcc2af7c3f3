"""The bounds of group configs by the controller's property file.

Source: org.apache.kafka.coordinator.group.GroupConfig, GroupCoordinatorConfig and ShareGroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.config_schema import parse_static
from kraftlake.settings.group_bounds import GROUP_KINDS, bounds_of_group
from kraftlake.settings.tables import BROKER_CONFIGS

_ASSIGNORS: Final = "group.streams.assignors"
_ASSIGNOR: Final = "streams.assignor.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"


def problem_of_group(node: ControllerConfig, parsed: Mapping[str, Any]) -> str | None:
    """The reason why a group can't have these configs by the bounds of the property file, or None.

    An assignor given by class in the property file is known only by its class name: the class is not loaded.
    """
    for name, value in parsed.items():
        low, high = bounds_of_group(name)
        if low is not None and value < (bound := _broker(node, low)):
            return f"{name} is below {low}, {bound}"
        if high is not None and value > (bound := _broker(node, high)):
            return f"{name} is above {high}, {bound}"
    if _ASSIGNOR in parsed:
        names = _broker(node, _ASSIGNORS)
        if parsed[_ASSIGNOR] not in names:
            return f"{parsed[_ASSIGNOR]!r} is none of {_ASSIGNORS}, {', '.join(names)}"
    for kind in GROUP_KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if session in parsed or heartbeat in parsed:
            timeout = parsed.get(session, _broker(node, f"group.{session}"))
            if timeout <= parsed.get(heartbeat, _broker(node, f"group.{heartbeat}")):
                return f"{session} is not above {heartbeat}"
    tags = parsed.get(_TAGS, [])
    if len(set(tags)) < len(tags):
        return f"{_TAGS} names a tag twice"
    if parsed.get(_DEAD_LETTERS, "").startswith("__"):
        return f"{_DEAD_LETTERS} begins with __"
    return None


def _broker(node: ControllerConfig, name: str) -> Any:
    key = BROKER_CONFIGS[name]
    return parse_static(key.parse, name, node.static_configs.get(name) or key.default or "")
