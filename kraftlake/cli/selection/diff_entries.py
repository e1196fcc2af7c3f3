"""The entries of a diff that a command line selects by topic, partition and broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    from kraftlake.image.diff import EntryChange, ImageDiff
    from kraftlake.image.metadata_image import MetadataImage


class DiffSelection(NamedTuple):
    """The part of a diff that a command line selects; an empty field selects all.

    `topics` (names or shell patterns) select themselves, their partitions and configs; `partitions` (`foo-3`) select
    themselves and the addition or removal of their topics; `brokers` select their registrations and configs, with
    `hosted` also the partitions that any of them has a replica of in either image.
    """

    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    hosted: bool = False

    def of(self, diff: ImageDiff, before: MetadataImage, after: MetadataImage) -> ImageDiff:
        """The selected entries of a diff of two images."""
        import attrs

        changes = diff.changes
        if self.topics or self.partitions:
            changes = tuple(change for change in changes if self._is_of_topic(change))
        if self.brokers:
            changes = tuple(change for change in changes if self._is_of_broker(change, before, after))
        return attrs.evolve(diff, changes=changes)

    def _is_of_topic(self, change: EntryChange) -> bool:
        if change.part == "configs":
            return change.path[0] == "TOPIC" and matches(change.path[1], self.topics)
        if change.part not in ("topics", "partitions"):
            return False
        if matches(change.path[0], self.topics) or change.key in self.partitions:
            return True
        return change.part == "topics" and any(change.key == one.rpartition("-")[0] for one in self.partitions)

    def _is_of_broker(self, change: EntryChange, *images: MetadataImage) -> bool:
        if change.part == "brokers":
            return int(change.key) in self.brokers
        if change.part == "configs":
            return change.path[0] == "BROKER" and change.path[1] in map(str, self.brokers)
        if not self.hosted or change.part != "partitions":
            return False
        topics = [image.topics.get_topic(change.path[0]) for image in images]
        states = [topic.partitions.get(int(change.path[1])) for topic in topics if topic is not None]
        return any(not set(self.brokers).isdisjoint(state.replicas) for state in states if state is not None)
