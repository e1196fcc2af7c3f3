"""The min.insync.replicas of topics over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kraftlake.diagnosis.availability.timeline import Change, Timeline
from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.configurations_image import TOPIC_RESOURCE
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.other_records import OtherChange


class MinIsrHistory:
    """The min.insync.replicas of each topic, by name, at the deltas that were added."""

    def __init__(self, image: MetadataImage) -> None:
        """Begin with the configs of an image, at the position 0."""
        self.numbers: dict[str, int] = {"": 0}
        """The number of each topic that ever had configs of its own; all others have that of no name."""
        self._changes: list[list[Change]] = [[]]
        self._note("", 0, image.provenance.timestamp, image.provenance.offset, image)
        for resource in sorted(image.configs.resource_data, key=attrs.astuple):
            if resource.type == TOPIC_RESOURCE:
                self._note(resource.name, 0, image.provenance.timestamp, image.provenance.offset, image)

    def take(self, others: Iterable[OtherChange], position: int, times: Any) -> None:
        """Add changes that follow the earlier ones; `times` are those of the deltas from `position` on."""
        for other in others:
            configs = other.change.configs_delta
            if configs is None:
                continue
            at = position + other.delta, int(times[other.delta]), other.offset
            for resource in configs.changes:
                if resource.type == TOPIC_RESOURCE and resource.name:
                    self._note(resource.name, *at, other.image)
            if min_insync_replicas(other.image, "") != self._changes[0][-1].value:
                for name in self.numbers:
                    self._note(name, *at, other.image)

    def _note(self, name: str, position: int, time: int, offset: int, image: MetadataImage) -> None:
        number = self.numbers.setdefault(name, len(self.numbers))
        if number == len(self._changes):
            self._changes.append([one._replace(group=number) for one in self._changes[0]])
        changes, value = self._changes[number], min_insync_replicas(image, name)
        if not changes or changes[-1].value != value:
            changes.append(Change(number, position, time, offset, value))

    def timeline(self, end: int) -> Timeline:
        """The values by number of a topic."""
        return Timeline.of([change for changes in self._changes for change in changes], end)
