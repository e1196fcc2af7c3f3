"""The settings of nodes that bound configs of groups, and the combinations that Kafka refuses.

Source: org.apache.kafka.coordinator.group.GroupConfig, GroupCoordinatorConfig and ShareGroupConfig.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.group_settings import GROUP_SETTINGS

GROUP_KINDS: Final = ("consumer", "share", "streams")
_CODECS: Final = range(5)
_OTHER_BOUNDS: Final[Mapping[str, tuple[str | None, str | None]]] = {
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
    "streams.task.offset.interval.ms": ("group.streams.min.task.offset.interval.ms", None),
}


def bounds_of_group(name: str) -> tuple[str | None, str | None]:
    """Return the names of the settings with the lowest and highest value of a group config, or None."""
    if name in _OTHER_BOUNDS:
        return _OTHER_BOUNDS[name]
    kind, _, rest = name.partition(".")
    low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    return (low, high) if high in GROUP_SETTINGS else (None, None)


def problems_of_bounds(value: Callable[[str], Any]) -> Iterator[str]:
    """Yield the contradictions between the settings of groups; `value` returns a setting, parsed, or its default."""
    for config in GROUP_CONFIGS:
        low, high = bounds_of_group(config)
        steps = [name for name in (low, f"group.{config}", high) if name is not None]
        for below, above in pairwise(steps):
            if value(below) > value(above):
                yield f"{below} is above {above}"
    for kind in GROUP_KINDS:
        session, heartbeat = f"group.{kind}.session.timeout.ms", f"group.{kind}.heartbeat.interval.ms"
        if value(session) <= value(heartbeat):
            yield f"{session} is not above {heartbeat}"
    if value("group.share.max.share.sessions") < value("group.share.max.size"):
        yield "group.share.max.share.sessions is below group.share.max.size"
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        if value(name) not in _CODECS:
            yield f"{name} is {value(name)}: codecs are {_CODECS[0]} to {_CODECS[-1]}"
    if "classic" not in value("group.coordinator.rebalance.protocols"):
        yield "group.coordinator.rebalance.protocols is without classic"
    tags = value("group.streams.rack.aware.assignment.tags")
    if len(set(tags)) < len(tags):
        yield "group.streams.rack.aware.assignment.tags names a tag twice"
