"""The offsets and times since when the state in an image holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from kraftlake.diagnosis.blaming import newest_changes
from kraftlake.diagnosis.thing_changes import Change, begins_of
from kraftlake.diagnosis.things import Thing
from kraftlake.replay.loader.record_faults import RECORD_FAULTS
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import BULK_FROM

_OF_PARTITIONS: Final = {"leader": "leader", "isr": "isr", "state": None}
_OF_BROKERS: Final = ("fenced", "inControlledShutdown")
_MANY_PARTITIONS: Final = 1_000
"""The number of partitions above which all records are read, and below it only those that change one of them."""


def since_of(source: LogSource, form: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
    """The times since when an image's partitions, brokers and configs have the values of its JSON form, or of a part.

    `{"topics": {name: {partition: {"leader": SINCE, "isr": SINCE, "state": SINCE}}}, "brokers": {id: {"fenced": SINCE,
    "inControlledShutdown": SINCE}}, "configs": {type: {resource: {name: SINCE}}}}` with the parts that the form has.
    SINCE is `{"offset", "timestamp"}` (epoch ms, None for none), with `"orEarlier": True` where the value dates from
    the snapshot with which the log begins, or earlier; `state` is that of all fields of the partition, as in the table
    `partition_history/`. The log is read once. Raises as `changes_of`.
    """
    topics, at = form.get("topics", {}), form["offset"]
    made: dict[str, Any] = {part: {} for part in ("topics", "brokers", "configs") if part in form}
    by_columns = partitions_by_columns(source, topics, at, lenient=lenient)
    for name, number, fields, _ in by_columns or ():
        made["topics"].setdefault(name, {})[number] = dict(zip(_OF_PARTITIONS, fields, strict=True))
    places = dict(chain(_places(form), () if by_columns else _places_of_partitions(topics)))
    found = newest_changes(source, places.values(), at, lenient=lenient)
    for (*path, last), thing in places.items():
        within = made
        for name in path:
            within = within.setdefault(name, {})
        if thing in found:
            within[last] = since_json(found[thing])
    return made


def partitions_by_columns(
    source: LogSource, topics: Mapping[str, Any], at: int, *, lenient: bool
) -> Iterable[tuple[str, str, Sequence[dict[str, Any]], int | None]] | None:
    """The partitions' answers and last leaders by columns; None where these don't pay, or don't show it exactly."""
    begin = begins_of(source, at, lenient=lenient)[0]
    many = sum(len(topic["partitions"]) for topic in topics.values()) >= _MANY_PARTITIONS
    if not many or at - begin < BULK_FROM:
        return None
    from kraftlake.diagnosis.partition_since import partitions_since

    try:
        return partitions_since(source, topics, begin, at)
    except RECORD_FAULTS:
        return None


def since_json(change: Change) -> dict[str, Any]:
    """The position from which a thing has its value, in JSON."""
    form = {"offset": change.since, "timestamp": change.since_time}
    return form | ({"orEarlier": True} if change.or_earlier else {})


def _places(form: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Thing]]:
    """Each broker's and config's thing with the path of its answer."""
    for id_ in form.get("brokers", {}):
        for field in _OF_BROKERS:
            yield ("brokers", id_, field), Thing.broker(int(id_), field)
    for type_, resources in form.get("configs", {}).items():
        for resource, configs in resources.items():
            for name in configs:
                yield ("configs", type_, resource, name), Thing.config(type_, resource, name)


def _places_of_partitions(topics: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Thing]]:
    for name, number in partitions_in(topics):
        for key, field in _OF_PARTITIONS.items():
            yield ("topics", name, number, key), Thing.partition(name, int(number), field)


def partitions_in(topics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The topics and numbers of the partitions in the JSON form of topics."""
    return ((name, number) for name, topic in topics.items() for number in topic["partitions"])
