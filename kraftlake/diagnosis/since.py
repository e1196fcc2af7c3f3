"""Since when what an image shows is so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kraftlake.diagnosis.blaming import newest_changes
from kraftlake.diagnosis.changes import Change
from kraftlake.diagnosis.things import Thing
from kraftlake.replay import LogSource

_OF_PARTITIONS: Final = {"leader": "leader", "isr": "isr", "state": None}
_OF_BROKERS: Final = ("fenced", "inControlledShutdown")


def since_of(source: LogSource, form: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
    """Since when the partitions, brokers and configs of an image are as its JSON form, or a part of it, says.

    `{"topics": {name: {partition: {"leader": SINCE, "isr": SINCE, "state": SINCE}}}, "brokers": {id: {"fenced": SINCE,
    "inControlledShutdown": SINCE}}, "configs": {type: {resource: {name: SINCE}}}}` with the parts that the form has.
    SINCE is `{"offset", "timestamp"}` (epoch ms, None for none), with `"orEarlier": True` where it has been so since
    the snapshot with which the log begins, or earlier; `state` is that of all fields of the partition, as in the table
    `partition_history/`. Reads the log once. Raises as `changes_of`.
    """
    places = dict(_places(form))
    found = newest_changes(source, places.values(), form["offset"], lenient=lenient)
    made: dict[str, Any] = {part: {} for part in ("topics", "brokers", "configs") if part in form}
    for (*path, last), thing in places.items():
        within = made
        for name in path:
            within = within.setdefault(name, {})
        if thing in found:
            within[last] = since_json(found[thing])
    return made


def since_json(change: Change) -> dict[str, Any]:
    """Since when a thing has its value, in JSON."""
    form = {"offset": change.since, "timestamp": change.since_time}
    return form | ({"orEarlier": True} if change.or_earlier else {})


def _places(form: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Thing]]:
    """Each thing with the place of its answer."""
    for name, topic in form.get("topics", {}).items():
        for number in topic["partitions"]:
            for key, field in _OF_PARTITIONS.items():
                yield ("topics", name, number, key), Thing.partition(name, int(number), field)
    for id_ in form.get("brokers", {}):
        for field in _OF_BROKERS:
            yield ("brokers", id_, field), Thing.broker(int(id_), field)
    for type_, resources in form.get("configs", {}).items():
        for resource, configs in resources.items():
            for name in configs:
                yield ("configs", type_, resource, name), Thing.config(type_, resource, name)
