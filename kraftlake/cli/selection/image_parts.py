"""The parts of an image that a user can ask for, and an image's JSON form or a diff cut down to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kraftlake.cli.selection.topic_names import matches

if TYPE_CHECKING:
    from kraftlake.image import EntryChange, ImageDiff, MetadataImage

PARTS: dict[str, tuple[str, ...]] = {
    "features": ("metadataVersion", "features", "elrEnabled"),
    "brokers": ("brokers",),
    "controllers": ("controllers",),
    "topics": ("topics",),
    "configs": ("configs",),
    "quotas": ("clientQuotas",),
    "producer-ids": ("nextProducerId",),
    "acls": ("acls",),
    "scram": ("scram",),
    "tokens": ("delegationTokens",),
}
"""The values of --part, and the keys of the JSON form that each selects."""


PARTITIONS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "unavailable": lambda partition, _: partition["leader"] < 0,
    "under-replicated": lambda partition, _: len(partition["isr"]) < len(partition["replicas"]),
    "under-min-isr": lambda partition, min_isr: partition["leader"] < 0 or len(partition["isr"]) < min_isr,
    "at-min-isr": lambda partition, min_isr: len(partition["isr"]) == min_isr,
}
"""The kinds of unhealthy partitions that can be selected, as by Kafka's TopicCommand; the second argument is
min.insync.replicas of the topic."""


class ImageSelection(NamedTuple):
    """The part of an image that a command line selects; an empty or None field selects all.

    `parts` are keys of PARTS, `topics` names or shell patterns, `partitions` kinds of PARTITIONS. Topics without parts
    mean their partitions and configs; a broker alone its registration, its configs and the partitions that it has
    replicas of; `partitions` those that are of any of these kinds, without configs.
    """

    parts: Collection[str] = ()
    topics: Sequence[str] = ()
    broker: int | None = None
    partitions: Collection[str] = ()

    def keys(self) -> set[str]:
        """The keys of the JSON form that are selected; empty for all."""
        wanted = list(self.parts)
        if not wanted and self.partitions:
            wanted = ["topics"]
        if not wanted and (self.topics or self.broker is not None):
            wanted = ["topics", "configs"] + (["brokers"] if self.broker is not None else [])
        return {key for part in wanted for key in PARTS[part]}

    def topics_to_read(self, image: MetadataImage) -> Collection[str] | None:
        """The names of the topics that `cut` may keep, found in columns; None where it must read each topic."""
        if (keys := self.keys()) and "topics" not in keys:
            return ()
        if not image.topics.is_large or not (self.topics or self.broker is not None or self.partitions):
            return None
        from kraftlake.image import topics_overview

        rows = image.topics.rows()
        names: Collection[str] = rows.table.names
        if self.partitions:
            names = topics_overview.unhealthy_topics(image, self.partitions)
        if self.broker is not None:
            names = topics_overview.topics_hosted(rows, self.broker).intersection(names)
        return [name for name in names if matches(name, self.topics)] if self.topics else names

    def cut(self, image: dict[str, Any], min_isr: Callable[[str], int] = lambda _: 1) -> dict[str, Any]:
        """The selected part of a JSON form, with its offset and epoch.

        `min_isr` gives min.insync.replicas of a topic.
        """
        keys = self.keys() or set(image)
        made = {key: value for key, value in image.items() if key in keys or key in ("offset", "epoch")}
        if self.topics and "topics" in made:
            made["topics"] = {name: topic for name, topic in image["topics"].items() if matches(name, self.topics)}
        if self.partitions and "topics" in made:
            made["topics"] = _with(
                made["topics"],
                lambda one, topic: any(PARTITIONS[kind](one, min_isr(topic)) for kind in self.partitions),
            )
        if self.broker is not None:
            if "topics" in made:
                made["topics"] = _with(made["topics"], lambda one, _: self.broker in one["replicas"])
            if "brokers" in made:
                made["brokers"] = {id_: value for id_, value in image["brokers"].items() if id_ == str(self.broker)}
        if "configs" in made and (self.topics or self.broker is not None):
            made["configs"] = _configs_of(image["configs"], self.topics, self.broker)
        return made


def of_topics(diff: ImageDiff, topics: Sequence[str]) -> ImageDiff:
    """The changes of a diff to these topics (shell patterns allowed), their partitions and configs."""
    import attrs

    return attrs.evolve(diff, changes=tuple(change for change in diff.changes if _is_of_topic(change, topics)))


def _is_of_topic(change: EntryChange, topics: Sequence[str]) -> bool:
    if change.part in ("topics", "partitions"):
        return matches(change.path[0], topics)
    return change.part == "configs" and change.path[0] == "TOPIC" and matches(change.path[1], topics)


def _with(topics: dict[str, Any], wanted: Callable[[dict[str, Any], str], bool]) -> dict[str, Any]:
    """The topics with such partitions, and of their partitions only these."""
    made = {}
    for name, topic in topics.items():
        found = {id_: value for id_, value in topic["partitions"].items() if wanted(value, name)}
        if found:
            made[name] = {**topic, "partitions": found}
    return made


def _configs_of(configs: dict[str, Any], topics: Sequence[str], broker: int | None) -> dict[str, Any]:
    made = {}
    for kind, resources in configs.items():
        kept = {
            name: values
            for name, values in resources.items()
            if (kind == "TOPIC" and topics and matches(name, topics)) or (kind == "BROKER" and name == str(broker))
        }
        if kept:
            made[kind] = kept
    return made
