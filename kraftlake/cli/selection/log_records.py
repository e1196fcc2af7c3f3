"""The records of a log that a command line selects by topic, partition and broker.

A filter sees every record of a range, in order: the subject of a record may depend on the records before it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kraftlake.cli.selection.log_names import LogNames
from kraftlake.records.record_ids import BROKER_FIELDS
from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.records.log_record import LogRecord

_TOPIC_CONFIG, _BROKER_CONFIG = 2, 4
_OF_A_PARTITION = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD")
_OF_A_TOPIC_BY_ID = (*_OF_A_PARTITION, "REMOVE_TOPIC_RECORD")
_WITH_AN_ID = ("TOPIC_RECORD", *_OF_A_TOPIC_BY_ID)


class Filter(Protocol):
    """Selects records."""

    def wants(self, record: LogRecord) -> bool:
        """Whether the next record is selected."""


class OfTopics:
    """Selects the records of topics, their partitions and configs; for a partition, its own and its topic's alone.

    `known` are the names given before the first record, and learn those in the records. A record that refers to a topic
    by name is about the topic that got the name last. A record about all topics is about all known ones.
    """

    def __init__(
        self, known: LogNames, patterns: Sequence[str], ids: Collection[str] = (), partitions: Sequence[str] = ()
    ) -> None:
        self._known = known
        self._patterns = patterns
        self._ids = ids
        self._partitions = {(name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in partitions}
        self._with_partitions = {topic for topic, _ in self._partitions}
        self._newest = {name: id_ for id_, name in known.topics.items()}
        self._knows_some = any(self._is_one(id_, name) for id_, name in known.topics.items())

    def wants(self, record: LogRecord) -> bool:
        """Whether the next record is selected."""
        type_: str = record.type
        message: Any = record.message
        if type_ == "TOPIC_RECORD":
            self._known.topics[str(message.topic_id)] = message.name
            self._newest[message.name] = str(message.topic_id)
            self._knows_some |= self._is_one(str(message.topic_id), message.name)
        name = self._topic_of(type_, message)
        id_ = str(message.topic_id) if type_ in _WITH_AN_ID else self._newest.get(name or "")
        if (name == "" and self._knows_some) or self._is_one(id_, name):
            return True
        if name is None or type_ not in _WITH_AN_ID:
            return False
        return (
            name in self._with_partitions
            if type_ not in _OF_A_PARTITION
            else (name, message.partition_id) in self._partitions
        )

    def _is_one(self, id_: str | None, name: str | None) -> bool:
        return id_ in self._ids or (name is not None and matches(name, self._patterns))

    def _topic_of(self, type_: str, message: Any) -> str | None:
        """The topic that a record is about: empty for all topics, None for none."""
        if type_ == "TOPIC_RECORD":
            return str(message.name)
        if type_ in _OF_A_TOPIC_BY_ID:
            return self._known.topics.get(str(message.topic_id))
        if type_ == "CONFIG_RECORD":
            return message.resource_name if message.resource_type == _TOPIC_CONFIG else None
        return message.topic_name if type_ == "CLEAR_ELR_RECORD" else None


class OfBrokers:
    """Selects the records of brokers: registrations, fencing and unfencing, configs.

    With `hosted`, the topic ids and numbers of the partitions that they host before the first record, the records of
    partitions that they host before or after the record are selected as well, and the removals of topics with such
    partitions.
    """

    def __init__(self, brokers: Collection[int], hosted: Collection[tuple[Any, int]] | None = None) -> None:
        self._brokers = frozenset(brokers)
        self._names = frozenset(map(str, brokers))
        self._hosted = None if hosted is None else set(hosted)
        self._at_begin: set[tuple[Any, int]] | None = None

    def wants(self, record: LogRecord) -> bool:
        """Whether the next record is selected."""
        type_: str = record.type
        message: Any = record.message
        if (field := BROKER_FIELDS.get(type(message))) is not None:
            return getattr(message, field) in self._brokers
        if type_ == "CONFIG_RECORD":
            return message.resource_type == _BROKER_CONFIG and message.resource_name in self._names
        if self._hosted is None:
            return False
        if type_ in _OF_A_PARTITION:
            return self._is_hosted(self._hosted, (message.topic_id, message.partition_id), message.replicas)
        if type_ == "REMOVE_TOPIC_RECORD":
            of_topic = {key for key in self._hosted if key[0] == message.topic_id}
            self._hosted -= of_topic
            return bool(of_topic)
        if type_ == "BEGIN_TRANSACTION_RECORD":
            self._at_begin = set(self._hosted)
        elif type_ == "ABORT_TRANSACTION_RECORD" and self._at_begin is not None:
            self._hosted = self._at_begin
        return False

    def _is_hosted(self, hosted: set[tuple[Any, int]], key: tuple[Any, int], replicas: Sequence[int] | None) -> bool:
        was_hosted = key in hosted
        if replicas is None:
            return was_hosted
        if self._brokers.isdisjoint(replicas):
            hosted.discard(key)
            return was_hosted
        hosted.add(key)
        return True


def hosted_before(
    source: Source, first: int | None, brokers: Collection[int], *, lenient: bool
) -> set[tuple[Any, int]]:
    """The topic ids and numbers of the partitions that brokers host before the offset `first`; None is the log's first.

    Raises as `Source.image`.
    """
    from kraftlake.image.broker_partitions import partitions_of

    begin = source.start_offset if first is None else first
    if begin == 0 or not source.reader.end_offset > source.start_offset:  # a snapshot file's records are all there is
        return set()
    image = source.image(begin - 1, lenient=lenient)
    topics = image.topics
    hosted = set()
    for broker in brokers:
        lists = partitions_of(image, broker)
        for name, number in (*lists.led, *lists.followed):
            topic = topics.get_topic(name)
            if topic is not None:
                hosted.add((topic.id, number))
    return hosted
