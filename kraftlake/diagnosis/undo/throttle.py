"""The throttle of partitions that a plan moves back: set before they move, and taken away once they have moved.

Source: org.apache.kafka.tools.reassign.ReassignPartitionsCommand, KIP-73.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from kraftlake.diagnosis.drift.comparison import Drift, DriftChange, paths_of
from kraftlake.diagnosis.drift.selection import is_selected
from kraftlake.diagnosis.undo.drafts import Sides
from kraftlake.diagnosis.undo.step import THROTTLES, Action, Step, StepChange, StepClass
from kraftlake.image.configurations_image import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigResource

RATE: Final = 50_000_000
"""The bytes that a broker sends to, or takes from, others in a second for partitions that move, where none is given."""
_RATES: Final = ("follower.replication.throttled.rate", "leader.replication.throttled.rate")
_FOLLOWERS, _LEADERS = "follower.replication.throttled.replicas", "leader.replication.throttled.replicas"


def throttle_steps(sides: Sides, steps: Iterable[Step], rate: int) -> Iterator[Step]:
    """The steps that throttle the moves among some steps, and those that end it; what has a throttle keeps it."""
    brokers: set[int] = set()
    for step in steps:
        topic = sides.present.topics.get_topic(step.subject["topic"]) if step.action is Action.REASSIGN else None
        if topic is None:
            continue
        senders, receivers = [], []
        for change in step.changes:
            partition = topic.partitions.get(int(change.field))
            arriving = [] if partition is None else [id_ for id_ in change.after if id_ not in partition.replicas]
            if partition is not None and arriving:
                brokers.update(partition.replicas, arriving)
                senders += [f"{change.field}:{id_}" for id_ in partition.replicas]
                receivers += [f"{change.field}:{id_}" for id_ in arriving]
        if receivers:
            replicas = {_FOLLOWERS: ",".join(receivers), _LEADERS: ",".join(senders)}
            yield from _around(sides, ConfigResource(TOPIC_RESOURCE, topic.name), replicas)
    registered = sides.present.cluster.brokers
    for id_ in sorted(brokers):
        if id_ in registered and not registered[id_].fenced:
            yield from _around(sides, ConfigResource(BROKER_RESOURCE, str(id_)), dict.fromkeys(_RATES, str(rate)))


def _around(sides: Sides, resource: ConfigResource, wanted: Mapping[str, str]) -> Iterator[Step]:
    """The steps before and after the moves that set configs of a resource which are not set now, nor then."""
    taken = [image.data for side in (sides.now, sides.then) if (image := side.configs.get(resource)) is not None]
    values = {name: value for name, value in wanted.items() if not any(name in data for data in taken)}
    (path, *_), subject = paths_of("configs", resource), {"type": resource.type_name, "name": resource.name}
    notes = ("while partitions move back", "once no partition moves")
    for (before, after), note in zip(((None, values), (values, None)), notes, strict=True):
        changes = tuple(
            StepChange(field=name, before=before and before[name], after=after and after[name]) for name in values
        )
        if changes:
            yield Step(
                action=Action.ALTER_CONFIGS, step_class=StepClass.SAFE, path=path, subject=subject, changes=changes,
                note=note,
            )  # fmt: skip


def left_throttles(drift: Drift, topics: Iterable[str], rate: int) -> Iterator[DriftChange]:
    """The part of a drift that is a throttle which an application of a plan, ended before its end, has left."""
    for one in drift.changes:
        if one.change.part != "configs" or one.key.type not in (TOPIC_RESOURCE, BROKER_RESOURCE):
            continue
        if one.key.type == TOPIC_RESOURCE and not is_selected("configs", one.key, topics=[*topics]):
            continue
        fields = tuple(
            change
            for change in one.change.fields
            if change.field in THROTTLES and change.after is None
            and (change.field not in _RATES or change.before == str(rate))
        )  # fmt: skip
        if fields:
            yield attrs.evolve(one, change=attrs.evolve(one.change, fields=fields))
