"""The names that a log has ever had: whether a request can match at all, and the names like it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from kraftlake.cli.selection.log_names import records_before
from kraftlake.records import metadata_records as r
from kraftlake.runtime.name_patterns import matches
from kraftlake.runtime.words import did_you_mean

if TYPE_CHECKING:
    from kraftlake.api import Source

_NAMING_API_KEYS = frozenset(record.API_KEY for record in (r.RegisterBrokerRecord, r.TopicRecord, r.PartitionRecord))
_NOWHERE = "at any offset of this log"


class KnownNames(NamedTuple):
    """The topics by id, the number of partitions that each had at most, and the brokers, of a whole log."""

    topics: dict[str, str]
    partitions: dict[str, int]
    brokers: set[int]

    @classmethod
    def of(cls, sources: Iterable[Source]) -> KnownNames:
        """The names in all of the sources' logs and snapshots; unreadable parts are left out."""
        names = cls({}, {}, set())
        for type_, data in chain.from_iterable(
            records_before(one, one.end_offset, _NAMING_API_KEYS) for one in sources
        ):
            if type_ == "TOPIC_RECORD":
                names.topics[data["topicId"]] = data["name"]
            elif type_ == "PARTITION_RECORD":
                most = max(names.partitions.get(data["topicId"], 0), data["partitionId"] + 1)
                names.partitions[data["topicId"]] = most
            else:
                names.brokers.add(data["brokerId"])
        return names

    def without_topic(self, patterns: Iterable[str]) -> list[str]:
        """Sentences on the patterns that no topic ever matched."""
        known = set(self.topics.values())
        return [
            f"no topic matches {pattern} {_NOWHERE}{_hint(pattern, known)}"
            for pattern in patterns
            if not any(matches(name, [pattern]) for name in known)
        ]

    def without_id(self, ids: Iterable[str]) -> list[str]:
        """Sentences on the ids that no topic ever had."""
        return [f"no topic has the id {id_} {_NOWHERE}" for id_ in ids if id_ not in self.topics]

    def without_partition(self, names: Iterable[str]) -> list[str]:
        """Sentences on the partitions that no topic ever had."""
        most: dict[str, int] = {}
        for id_, name in self.topics.items():
            most[name] = max(most.get(name, 0), self.partitions.get(id_, 0))
        sentences = []
        for asked in names:
            topic, _, number = asked.rpartition("-")
            if topic not in most:
                sentences.append(f"there is no partition {asked} {_NOWHERE}{_hint(topic, most)}")
            elif int(number) >= most[topic]:
                last = f": {topic} had {topic}-0 to {topic}-{most[topic] - 1}" if most[topic] else ""
                sentences.append(f"there is no partition {asked} {_NOWHERE}{last}")
        return sentences

    def without_broker(self, brokers: Iterable[int]) -> list[str]:
        """Sentences on the brokers that never registered."""
        known = f"registered brokers: {', '.join(map(str, sorted(self.brokers))) or 'none'}"
        return [f"broker {one} is not registered {_NOWHERE}; {known}" for one in brokers if one not in self.brokers]


def unknown_names(
    sources: Iterable[Source],
    *,
    topics: Sequence[str] = (),
    topic_ids: Sequence[str] = (),
    partitions: Sequence[str] = (),
    brokers: Sequence[int] = (),
) -> tuple[list[str], bool]:
    """Sentences on each given name that the whole logs lack, and whether therefore nothing can match.

    Topics, ids and partitions select the union of what they name; brokers select among it.
    """
    known = KnownNames.of(sources)
    of_topics = [*known.without_topic(topics), *known.without_id(topic_ids), *known.without_partition(partitions)]
    of_brokers = known.without_broker(brokers)
    asked = len(topics) + len(topic_ids) + len(partitions)
    return of_topics + of_brokers, 0 < asked == len(of_topics) or 0 < len(brokers) == len(of_brokers)


def _hint(wanted: str, known: Iterable[str]) -> str:
    near = did_you_mean(wanted, known)
    return f": {near}" if near else ""
