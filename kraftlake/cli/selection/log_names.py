"""The names of the ids in a log, and the records of given topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kraftlake.cli.selection.topic_names import matches
from kraftlake.image.kafka_names import acl_words
from kraftlake.replay.reading.replay_base import readable_batches

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.log_record import LogRecord

_NAMING_API_KEYS = frozenset({2, 18})
"""TopicRecord and AccessControlEntryRecord: what gives ids a name."""

_TOPIC_CONFIG = 2
_OF_A_TOPIC_BY_ID = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "REMOVE_TOPIC_RECORD")
_WITH_AN_ID = ("TOPIC_RECORD", *_OF_A_TOPIC_BY_ID)


class Names:
    """The names that the log has given to ids: topics by id, ACLs by id."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.acls: dict[str, str] = {}

    def learn(self, type_: str, data: Mapping[str, Any]) -> None:
        """Remember what a record names."""
        if type_ == "TOPIC_RECORD":
            self.topics[data["topicId"]] = data["name"]
        elif type_ == "ACCESS_CONTROL_ENTRY_RECORD":
            self.acls[data["id"]] = acl_words(data)

    def topic(self, id_: str) -> str:
        """The topic's name, or its id where the name is unknown."""
        return self.topics.get(id_, id_)


def names_before(source: Source, before: int | None) -> Names:
    """The names that lie before the offset `before`, in snapshots and in the log; None is the log's start.

    Unreadable batches are skipped: later records are shown without the names in them.
    """
    names = Names()
    if before is None or source.start_offset > 0 or source.broken_ranges:
        for snapshot in source.snapshots:
            if snapshot.finished and (before is None or snapshot.end_offset <= max(before, source.start_offset)):
                _learn(names, snapshot.batches())
    if before is not None and before > source.start_offset:
        start = source.start_offset
        _learn(names, readable_batches(source.reader, start, before - 1, lambda *_: None))
    return names


def _learn(names: Names, batches: Iterable[RecordBatch]) -> None:
    for batch in batches:
        if not batch.control and any(value[1] in _NAMING_API_KEYS for value in batch.values if len(value) > 1):
            from kraftlake.records.log_record import log_records

            for record in log_records(batch):
                form = record.to_json()
                names.learn(form["type"], form["data"])


def of_topics(
    records: Iterable[LogRecord], patterns: Sequence[str], known: Names, *, ids: Collection[str] = ()
) -> Iterator[LogRecord]:
    """The records of topics whose names match, or that have one of the `ids`: themselves, their partitions and configs.

    `known` are the names that lie before the records; they learn those that lie in them. What names a topic by its name
    is of the one that was given the name last.
    """
    newest = {name: id_ for id_, name in known.topics.items()}
    for record in records:
        data = record.to_json()["data"]
        known.learn(record.type, data)
        if record.type == "TOPIC_RECORD":
            newest[data["name"]] = data["topicId"]
        name = _topic_of(record.type, data, known)
        id_ = data["topicId"] if record.type in _WITH_AN_ID else newest.get(name or "")
        if id_ in ids or name == "" or (name is not None and matches(name, patterns)):
            yield record


def _topic_of(type_: str, data: Any, known: Names) -> str | None:
    """The topic that a record is of, empty where it is of all of them; None where it is of none."""
    if type_ == "TOPIC_RECORD":
        return str(data["name"])
    if type_ in _OF_A_TOPIC_BY_ID:
        return known.topics.get(data["topicId"])
    if type_ == "CONFIG_RECORD":
        return data["resourceName"] if data["resourceType"] == _TOPIC_CONFIG else None
    return data["topicName"] if type_ == "CLEAR_ELR_RECORD" else None
