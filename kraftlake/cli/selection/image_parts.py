"""The parts of an image that a user can ask for, and an image's JSON form cut down to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kraftlake.cli.selection.principals import PARTS as PARTS_OF_PRINCIPALS
from kraftlake.cli.selection.principals import parts_of
from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    from kraftlake.image.metadata_image import MetadataImage

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


class ImageSelection(NamedTuple):
    """The part of an image that a command line selects; an empty field selects all.

    `parts` are keys of PARTS, `topics` names or shell patterns, `named` partitions by name (`foo-3`), `troubles` kinds
    of TROUBLES. Topics without parts mean their partitions and configs; brokers alone their registrations, their
    configs and the partitions that any of them has a replica of; `troubles` the partitions that are of any of these
    kinds, and `named` these alone, without configs; principals their ACLs and tokens, and of users the
    credentials and quotas.
    """

    parts: Collection[str] = ()
    topics: Sequence[str] = ()
    brokers: Collection[int] = ()
    troubles: Collection[str] = ()
    named: Sequence[str] = ()
    principals: Collection[str] = ()

    def keys(self) -> set[str]:
        """The keys of the JSON form that are selected; empty for all."""
        wanted = list(self.parts)
        if not wanted and (self.troubles or self.named):
            wanted = ["topics"]
        if not wanted and (self.topics or self.brokers):
            wanted = ["topics", "configs"] + (["brokers"] if self.brokers else [])
        keys = {key for part in wanted for key in PARTS[part]}
        return keys | {*PARTS_OF_PRINCIPALS} if self.principals and not self.parts else keys

    def topics_to_read(self, image: MetadataImage) -> Collection[str] | None:
        """The names of the topics that `cut` may keep, found in columns; None where it must read each topic."""
        if (keys := self.keys()) and "topics" not in keys:
            return ()
        if not image.topics.is_large or not (self.topics or self.named or self.brokers or self.troubles):
            return None
        from kraftlake.image import topics_overview

        rows = image.topics.rows()
        names: Collection[str] = rows.table.names
        if self.troubles:
            names = topics_overview.unhealthy_topics(image, self.troubles)
        if self.brokers:
            names = {
                name for broker in self.brokers for name in topics_overview.topics_hosted(rows, broker)
            }.intersection(names)
        return [name for name in names if self._is_of_topics(name)]

    def cut(self, image: dict[str, Any], min_isr: Callable[[str], int] = lambda _: 1) -> dict[str, Any]:
        """The selected part of a JSON form, with its offset and epoch.

        `min_isr` returns min.insync.replicas of a topic.
        """
        keys = self.keys() or set(image)
        made = {key: value for key, value in image.items() if key in keys or key in ("offset", "epoch")}
        if "topics" in made and (self.topics or self.named):
            made["topics"] = {name: topic for name, topic in image["topics"].items() if self._is_of_topics(name)}
        if "topics" in made and self.named:
            made["topics"] = _with(made["topics"], self._is_named)
        if "topics" in made and self.troubles:
            made["topics"] = _with(made["topics"], lambda one, name, _: self._is_in_trouble(one, min_isr(name)))
        if self.brokers:
            if "topics" in made:
                made["topics"] = _with(
                    made["topics"], lambda one, *_: not set(self.brokers).isdisjoint(one["replicas"])
                )
            if "brokers" in made:
                made["brokers"] = {id_: value for id_, value in image["brokers"].items() if int(id_) in self.brokers}
        if "configs" in made and (self.topics or self.brokers):
            made["configs"] = _configs_of(image["configs"], self.topics, self.brokers)
        if self.principals:
            made |= {key: part for key, part in parts_of(self.principals, image).items() if key in made}
        return made

    def _is_of_topics(self, name: str) -> bool:
        """Whether a topic is selected, or has a partition that is."""
        if not (self.topics or self.named):
            return True
        return matches(name, self.topics) or any(name == one.rpartition("-")[0] for one in self.named)

    def _is_in_trouble(self, partition: dict[str, Any], min_isr: int) -> bool:
        from kraftlake.image.partition_health import TROUBLES

        numbers = (partition["leader"], len(partition["isr"]), len(partition["replicas"]), min_isr)
        return any(TROUBLES[kind](*numbers) for kind in self.troubles)

    def _is_named(self, _: dict[str, Any], topic: str, number: str) -> bool:
        return matches(topic, self.topics) or f"{topic}-{number}" in self.named


def _with(topics: dict[str, Any], wanted: Callable[[dict[str, Any], str, str], bool]) -> dict[str, Any]:
    """The topics with `wanted` partitions (PARTITION, topic, number), cut down to these partitions."""
    made = {}
    for name, topic in topics.items():
        found = {id_: value for id_, value in topic["partitions"].items() if wanted(value, name, id_)}
        if found:
            made[name] = {**topic, "partitions": found}
    return made


def _configs_of(configs: dict[str, Any], topics: Sequence[str], brokers: Collection[int]) -> dict[str, Any]:
    made = {}
    ids = {str(broker) for broker in brokers}
    for kind, resources in configs.items():
        kept = {
            name: values
            for name, values in resources.items()
            if (kind == "TOPIC" and topics and matches(name, topics)) or (kind == "BROKER" and name in ids)
        }
        if kept:
            made[kind] = kept
    return made
