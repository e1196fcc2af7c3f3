"""The parts of an image that a user can ask for, and an image's JSON form or a diff cut down to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

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
"""What --part takes, and the keys of the JSON form that it stands for."""


PARTITIONS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "unavailable": lambda partition, _: partition["leader"] < 0,
    "under-replicated": lambda partition, _: len(partition["isr"]) < len(partition["replicas"]),
    "under-min-isr": lambda partition, min_isr: partition["leader"] < 0 or len(partition["isr"]) < min_isr,
    "at-min-isr": lambda partition, min_isr: len(partition["isr"]) == min_isr,
}
"""Which partitions can be asked for, by what they are, as by Kafka's own tool for topics; the second argument is what
min.insync.replicas is for the topic."""


def cut(
    image: dict[str, Any],
    *,
    parts: Iterable[str] = (),
    topics: Sequence[str] = (),
    broker: int | None = None,
    partitions: Collection[str] = (),
    min_isr: Callable[[str], int] = lambda _: 1,
) -> dict[str, Any]:
    """The image with the asked-for parts, topics (shell patterns allowed) and what broker `broker` hosts only.

    Topics asked for without parts mean their partitions and configs; a broker alone its registration, its configs
    and the partitions that it has replicas of; `partitions` (of PARTITIONS) those that are any of these, without
    configs; `min_isr` says what min.insync.replicas is for a topic. Offset and epoch always stay.
    """
    keys = keys_of(parts=parts, topics=topics, broker=broker, partitions=partitions) or set(image)
    made = {key: value for key, value in image.items() if key in keys or key in ("offset", "epoch")}
    if topics and "topics" in made:
        made["topics"] = {name: topic for name, topic in image["topics"].items() if matches(name, topics)}
    if partitions and "topics" in made:
        made["topics"] = _with(
            made["topics"], lambda one, topic: any(PARTITIONS[kind](one, min_isr(topic)) for kind in partitions)
        )
    if broker is not None:
        if "topics" in made:
            made["topics"] = _with(made["topics"], lambda one, _: broker in one["replicas"])
        if "brokers" in made:
            made["brokers"] = {id_: value for id_, value in image["brokers"].items() if id_ == str(broker)}
    if "configs" in made and (topics or broker is not None):
        made["configs"] = _configs_of(image["configs"], topics, broker)
    return made


MAY_LEAD = ("isr", "elr", "lastKnownElr")
"""The lists of brokers that may lead a partition without a leader; the first one that is not empty counts."""


def may_lead(partition: dict[str, Any], brokers: dict[str, Any]) -> dict[str, Any]:
    """Why a PARTITION has no leader: the first non-empty list of MAY_LEAD, and why none of its brokers leads.

    `mayLead` is None, and `states` are empty, where no replica was in sync.
    """
    key = next((key for key in MAY_LEAD if partition[key]), None)
    ids = [] if key is None else partition[key]
    return {"mayLead": key, "states": {str(id_): _why_not(brokers.get(str(id_))) for id_ in ids}}


def _why_not(broker: dict[str, Any] | None) -> str:
    """Why a broker does not lead."""
    if broker is None:
        return "not registered"
    if broker["fenced"]:
        return "fenced"
    return "shutting down" if broker["inControlledShutdown"] else "not elected"


def of_topics(diff: ImageDiff, topics: Sequence[str]) -> ImageDiff:
    """The changes of a diff to these topics (shell patterns allowed), their partitions and configs."""
    import attrs

    return attrs.evolve(diff, changes=tuple(change for change in diff.changes if _is_of_topic(change, topics)))


def _is_of_topic(change: EntryChange, topics: Sequence[str]) -> bool:
    if change.part in ("topics", "partitions"):
        return matches(change.path[0], topics)
    return change.part == "configs" and change.path[0] == "TOPIC" and matches(change.path[1], topics)


def keys_of(
    *,
    parts: Iterable[str] = (),
    topics: Sequence[str] = (),
    broker: int | None = None,
    partitions: Collection[str] = (),
) -> set[str]:
    """The keys of the JSON form that `cut` leaves; none where it leaves all."""
    wanted = list(parts)
    if not wanted and partitions:
        wanted = ["topics"]
    if not wanted and (topics or broker is not None):
        wanted = ["topics", "configs"] + (["brokers"] if broker is not None else [])
    return {key for part in wanted for key in PARTS[part]}


def topics_to_read(
    image: MetadataImage, *, topics: Sequence[str] = (), broker: int | None = None, partitions: Collection[str] = ()
) -> Collection[str] | None:
    """The names of all topics that `cut` may leave anything of, from columns; None where it has to look at each."""
    if not image.topics.is_large or not (topics or broker is not None or partitions):
        return None
    from kraftlake.image import topics_overview

    rows = image.topics.rows()
    names: Collection[str] = rows.table.names
    if partitions:
        names = topics_overview.topics_in_trouble(image, partitions)
    if broker is not None:
        names = topics_overview.topics_hosted(rows, broker).intersection(names)
    return [name for name in names if matches(name, topics)] if topics else names


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
