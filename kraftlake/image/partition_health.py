"""The health of a partition, said of its numbers; of arrays of numbers for many partitions at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.runtime.java_values import parse_integer, trim

MIN_ISR: Final = "min.insync.replicas"
_DEFAULT_MIN_ISR = 1


def min_isr_among(values: Iterable[str]) -> int:
    """The first integer among the values of `min.insync.replicas` in several sources; Kafka's default without one."""
    for value in values:
        try:
            return parse_integer(trim(value), 32)
        except ValueError:
            continue
    return _DEFAULT_MIN_ISR


def is_under_min_isr(in_sync: Any, replicas: Any, min_isr: Any) -> Any:
    """Whether fewer replicas are in sync than acks=all asks for: min.insync.replicas, or all where there are fewer."""
    return (in_sync < min_isr) & (in_sync < replicas)


TROUBLES: Final[Mapping[str, Callable[[Any, Any, Any, Any], Any]]] = {
    "unavailable": lambda leader, *_: leader == NO_LEADER,
    "under-replicated": lambda _, in_sync, replicas, __: in_sync < replicas,
    "under-min-isr": lambda leader, in_sync, _, min_isr: (leader == NO_LEADER) | (in_sync < min_isr),
    "at-min-isr": lambda _, in_sync, __, min_isr: in_sync == min_isr,
}
"""The kinds of unhealthy partitions of Kafka's TopicCommand.

By leader, number of ISR members, number of replicas, and min.insync.replicas of the topic.
"""
