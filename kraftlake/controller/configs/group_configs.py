"""The configs of groups: their definitions, and their bounds by the controller's property file.

Source: org.apache.kafka.coordinator.group.GroupConfig, GroupCoordinatorConfig and ShareGroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.config_keys import ConfigKey, at_least, auto_offset_reset, members, one_of
from kraftlake.controller.configs.config_schema import BROKER_LISTS, parse_static

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    "consumer.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0)),
    "consumer.assignor.offload.enable": ConfigKey("BOOLEAN", "true"),
    "consumer.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1)),
    "consumer.session.timeout.ms": ConfigKey("INT", "45000", at_least(1)),
    "errors.deadletterqueue.copy.record.enable": ConfigKey("BOOLEAN", "false"),
    "errors.deadletterqueue.topic.name": ConfigKey("STRING", ""),
    "share.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0)),
    "share.assignor.offload.enable": ConfigKey("BOOLEAN", "true"),
    "share.auto.offset.reset": ConfigKey("STRING", "latest", auto_offset_reset),
    "share.delivery.count.limit": ConfigKey("INT", "5", at_least(2)),
    "share.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1)),
    "share.isolation.level": ConfigKey("STRING", "read_uncommitted", one_of("read_committed", "read_uncommitted")),
    "share.partition.max.record.locks": ConfigKey("INT", "2000", at_least(100)),
    "share.record.lock.duration.ms": ConfigKey("INT", "30000", at_least(1000)),
    "share.renew.acknowledge.enable": ConfigKey("BOOLEAN", "true"),
    "share.session.timeout.ms": ConfigKey("INT", "45000", at_least(1)),
    "streams.acceptable.recovery.lag": ConfigKey("LONG", "10000", at_least(0)),
    "streams.assignment.interval.ms": ConfigKey("INT", "1000", at_least(0)),
    "streams.assignor.name": ConfigKey("STRING", None),
    "streams.assignor.offload.enable": ConfigKey("BOOLEAN", "true"),
    "streams.heartbeat.interval.ms": ConfigKey("INT", "5000", at_least(1)),
    "streams.initial.rebalance.delay.ms": ConfigKey("INT", "3000", at_least(0)),
    "streams.num.standby.replicas": ConfigKey("INT", "0", at_least(0)),
    "streams.num.warmup.replicas": ConfigKey("INT", "2", at_least(0)),
    "streams.rack.aware.assignment.tags": ConfigKey("LIST", "", members()),
    "streams.session.timeout.ms": ConfigKey("INT", "45000", at_least(1)),
    "streams.task.offset.interval.ms": ConfigKey("INT", "60000", at_least(1)),
}
"""Every config of a group."""

BROKER_BOUNDS: Final[Mapping[str, str]] = {
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.max.assignment.interval.ms": "15000",
    "group.consumer.max.heartbeat.interval.ms": "15000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "group.consumer.min.session.timeout.ms": "45000",
    "group.consumer.session.timeout.ms": "45000",
    "group.share.heartbeat.interval.ms": "5000",
    "group.share.max.assignment.interval.ms": "15000",
    "group.share.max.delivery.count.limit": "10",
    "group.share.max.heartbeat.interval.ms": "15000",
    "group.share.max.partition.max.record.locks": "4000",
    "group.share.max.record.lock.duration.ms": "60000",
    "group.share.max.session.timeout.ms": "60000",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.min.delivery.count.limit": "2",
    "group.share.min.heartbeat.interval.ms": "5000",
    "group.share.min.partition.max.record.locks": "100",
    "group.share.min.record.lock.duration.ms": "15000",
    "group.share.min.session.timeout.ms": "45000",
    "group.share.session.timeout.ms": "45000",
    "group.streams.heartbeat.interval.ms": "5000",
    "group.streams.max.assignment.interval.ms": "15000",
    "group.streams.max.heartbeat.interval.ms": "15000",
    "group.streams.max.session.timeout.ms": "60000",
    "group.streams.max.standby.replicas": "2",
    "group.streams.max.warmup.replicas": "20",
    "group.streams.min.assignment.interval.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "5000",
    "group.streams.min.session.timeout.ms": "45000",
    "group.streams.min.task.offset.interval.ms": "15000",
    "group.streams.session.timeout.ms": "45000",
}
"""The broker configs that bound group configs or are their defaults, with their own defaults."""

_OTHER_BOUNDS: Final[Mapping[str, tuple[str | None, str | None]]] = {
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
    "streams.task.offset.interval.ms": ("group.streams.min.task.offset.interval.ms", None),
}
_INT: Final = ConfigKey("INT", None)
_ASSIGNORS: Final = "group.streams.assignors"
_ASSIGNOR: Final = "streams.assignor.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"


def problem_of_group(node: ControllerConfig, parsed: Mapping[str, Any]) -> str | None:
    """The reason why a group can't have these configs by the bounds of the property file, or None.

    An assignor that the property file names by its class is known by that class name only: the class is not loaded.
    """
    for name, value in parsed.items():
        low, high = _bounds(name)
        if low is not None and value < (bound := _broker(node, low)):
            return f"{name} is below {low}, {bound}"
        if high is not None and value > (bound := _broker(node, high)):
            return f"{name} is above {high}, {bound}"
    if _ASSIGNOR in parsed:
        names = parse_static(
            ConfigKey("LIST", None, members()),
            _ASSIGNORS,
            node.static_configs.get(_ASSIGNORS) or BROKER_LISTS[_ASSIGNORS] or "",
        )
        if parsed[_ASSIGNOR] not in names:
            return f"{parsed[_ASSIGNOR]!r} is none of {_ASSIGNORS}, {', '.join(names)}"
    for kind in ("consumer", "share", "streams"):
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


def _bounds(name: str) -> tuple[str | None, str | None]:
    """The names of the broker configs with the lowest and highest value of a group config, or None."""
    if name in _OTHER_BOUNDS:
        return _OTHER_BOUNDS[name]
    kind, _, rest = name.partition(".")
    low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    return (low, high) if high in BROKER_BOUNDS else (None, None)


def _broker(node: ControllerConfig, name: str) -> int:
    number: int = parse_static(_INT, name, node.static_configs.get(name, BROKER_BOUNDS[name]))
    return number
