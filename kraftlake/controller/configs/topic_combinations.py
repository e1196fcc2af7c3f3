"""The combinations of a topic's configs that Kafka refuses.

Source: LogConfig.validate, which reads a topic's own configs and the controller's property file, but no dynamic
configs of the cluster or a broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.config_schema import parse_static, static_topic_config
from kraftlake.settings.tables import BROKER_CONFIGS

_REMOTE: Final = "remote.storage.enable"
_REMOTE_SYSTEM: Final = "remote.log.storage.system.enable"
_UNLIMITED: Final = -1
_AS_RETENTION: Final = -2


def problem_of_topic(node: ControllerConfig, before: Mapping[str, str], parsed: Mapping[str, Any]) -> str | None:
    """The reason why a topic with the values `before` can't have the combination of `parsed` values, or None."""

    def value(name: str) -> Any:
        return parsed[name] if name in parsed else static_topic_config(node, name)

    if value("min.compaction.lag.ms") > value("max.compaction.lag.ms"):
        return "min.compaction.lag.ms is above max.compaction.lag.ms"
    if not value(_REMOTE):
        if before.get(_REMOTE, "").lower() == "true" and not value("remote.log.delete.on.disable"):
            return f"{_REMOTE} can't be turned off unless remote.log.delete.on.disable is true"
        return None
    if not parse_static(
        BROKER_CONFIGS[_REMOTE_SYSTEM].parse, _REMOTE_SYSTEM, node.static_configs.get(_REMOTE_SYSTEM, "false")
    ):
        return f"{_REMOTE} needs remote storage, which this cluster has not"
    if not set(value("cleanup.policy")) <= {"delete"}:
        return f"{_REMOTE} needs the cleanup.policy delete, or none"
    for unit in ("bytes", "ms"):
        problem = _problem_of_retention(
            unit,
            max(value(f"retention.{unit}"), _UNLIMITED),
            value(f"local.retention.{unit}"),
            value(f"remote.copy.lag.{unit}"),
            copies=not value("remote.log.copy.disable"),
        )
        if problem is not None:
            return problem
    return None


def _problem_of_retention(unit: str, retention: int, local: int, lag: int, *, copies: bool) -> str | None:
    name = f"local.retention.{unit}"
    if retention > _UNLIMITED and local != _AS_RETENTION:
        if local == _UNLIMITED:
            return f"{name} is unlimited, and retention.{unit} is {retention}"
        if local > retention:
            return f"{name} is above retention.{unit}, {retention}"
    effective = retention if local == _AS_RETENTION else local
    if lag > 0 and 0 <= effective < lag:
        return f"remote.copy.lag.{unit} is above {name}, {effective}"
    if not copies and local not in (_AS_RETENTION, retention):
        return f"without copies {name} is the same as retention.{unit}"
    return None
