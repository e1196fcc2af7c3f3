"""The health of the partitions of an image, and the part of an image that a question needs. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
from rpds import HashTrieMap

from kraftlake.diagnosis.image_columns import ImageColumns
from kraftlake.diagnosis.partition_conditions import CONDITIONS
from kraftlake.diagnosis.trial.reassignment_file import PartitionName
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.runtime.json_names import fields_as_json


@attrs.frozen(kw_only=True)
class Standing:
    """The health of the partitions of a cluster at one moment; lists are sorted names such as `foo-3`.

    `offline` have no leader. `under_min_isr` have fewer replicas in sync than min.insync.replicas. `recovering` have a
    leader from an unclean election, which may lack records. `reassigning` are being reassigned. `leaders` is the number
    of partitions that each broker leads, without those that lead none.
    """

    offline: tuple[str, ...]
    under_min_isr: tuple[str, ...]
    recovering: tuple[str, ...]
    reassigning: tuple[str, ...]
    leaders: Mapping[int, int]

    @classmethod
    def of(cls, image: MetadataImage) -> Standing:
        """The standing of the partitions of an image."""
        columns = ImageColumns.of(image)

        def named(condition: str) -> tuple[str, ...]:
            holds = CONDITIONS[condition](columns.states, columns.min_isr)
            return tuple(sorted(columns.names(np.flatnonzero(holds))))

        leader = columns.states.leader
        brokers, counts = np.unique(leader[leader != NO_LEADER], return_counts=True)
        return cls(
            offline=named("offline"),
            under_min_isr=named("under_min_isr"),
            recovering=named("recovering"),
            reassigning=named("being_reassigned"),
            leaders=dict(zip(brokers.tolist(), counts.tolist(), strict=True)),
        )

    def to_json(self) -> dict[str, Any]:
        """The standing in the JSON of a step."""
        return fields_as_json(self) | {"leaders": {str(broker): count for broker, count in self.leaders.items()}}


def gone_into(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    """The names in the second list that are not in the first, sorted."""
    return tuple(sorted(set(after).difference(before)))


def part_of(image: MetadataImage, partitions: Iterable[PartitionName]) -> MetadataImage:
    """The image with some of its partitions, and with the first of each of their topics.

    The controller decides for each partition on its own, but takes the replication factor from the first.
    """
    wanted: dict[str, set[int]] = {}
    for name, number in partitions:
        wanted.setdefault(name, set()).add(number)
    topics = {}
    for name, numbers in wanted.items():
        whole = image.topics.get_topic(name)
        assert whole is not None, "it is one of the image"
        first = 0 if 0 in whole.partitions else min(whole.partitions)
        kept = {number: whole.partitions[number] for number in {first, *numbers}}
        topics[whole.id] = TopicImage(name=name, id=whole.id, partitions=HashTrieMap(kept))
    return attrs.evolve(image, topics=TopicsImage.EMPTY.changed({}, topics))
