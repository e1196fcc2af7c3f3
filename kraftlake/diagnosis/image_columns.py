"""The partitions of an image as the columns that conditions take. Imports numpy."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.partition_changes import PartitionChanges, changes_of_image
from kraftlake.tables.events.distinct_changes import event_columns
from kraftlake.tables.events.partition_events import PartitionColumns


@attrs.frozen(kw_only=True, eq=False)
class ImageColumns:
    """The n partitions of an image, in no order: their `states`, and min.insync.replicas of each (int32[n])."""

    states: PartitionColumns
    min_isr: Any
    rows: PartitionChanges
    topics: list[str]
    """The topics' names by number."""

    @classmethod
    def of(cls, image: MetadataImage) -> ImageColumns:
        """The columns of an image."""
        rows = changes_of_image(image.topics)
        topics: list[str] = rows.names.topics.to_pylist()
        min_isr = np.array([min_insync_replicas(image, name) for name in topics], np.int32)
        return cls(states=event_columns(rows, rows.after), min_isr=min_isr[rows.topics], rows=rows, topics=topics)

    def at(self, some: Any) -> list[tuple[str, str, int]]:
        """Topic name, topic id and number of the partitions at some indices (int64[m])."""
        numbers = self.rows.topics[some].tolist()
        ids = self.rows.names.ids.take(self.rows.topics[some]).to_pylist()
        names = [self.topics[number] for number in numbers]
        return list(zip(names, ids, self.rows.partitions[some].tolist(), strict=True))

    def names(self, some: Any) -> list[str]:
        """The names of the partitions at some indices: `foo-3`."""
        return [f"{topic}-{number}" for topic, _, number in self.at(some)]

    def directories(self) -> tuple[list[tuple[int, Uuid]], Any]:
        """The brokers with their directories that hold replicas, and the index of each replica's in them (int64[r])."""
        ids = [Uuid.from_string(text) for text in self.rows.names.directories.to_pylist()]
        _, directories = self.rows.lists(self.rows.after).flat("directories")
        keys, which = np.unique(pair_keys(self.states.hosts.replicas.members, directories), return_inverse=True)
        return [(int(key) >> 32, ids[int(key) & 0xFFFF_FFFF]) for key in keys], which


def pair_keys(high: Any, low: Any) -> Any:
    """Pairs of int32 as one number each (int64)."""
    return high.astype(np.int64) << 32 | low.astype(np.int64) & 0xFFFF_FFFF
