"""Why a record of topics contradicts a bulk change: the sentence that `ObjectChange` has for it. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from rpds import HashTrieMap

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.object_change import ObjectChange
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import SHAPE, registration_of
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.kernels.replay.change_state import ABSENT
from kraftlake.records.metadata_records import RemoveTopicRecord
from kraftlake.runtime import ReplayError


def fault_of(bulk: BulkChange, message: Any) -> ReplayError:
    """The error of a record of topics at which `bulk` stopped."""
    name, topic_id = getattr(message, "name", getattr(message, "topic_name", None)), getattr(message, "topic_id", None)
    numbers = (-1 if topic_id is None else bulk.number_of_id(topic_id), -1 if name is None else bulk.topic_number(name))
    by_name = {bulk.topic_name(number): number for number in numbers if number >= 0}  # the holder of the name stays
    topics = [_topic(bulk, number, getattr(message, "partition_id", None)) for number in by_name.values()]
    change = ObjectChange.of_some(topics, {name: bulk.topic_id(topic) for name, topic in bulk.taken_names})
    try:
        if isinstance(message, RemoveTopicRecord):
            change.remove_topic(message)
        else:
            change.replay(message)
    except ReplayError as error:
        return error
    raise AssertionError(f"{message} contradicts nothing")


def _topic(bulk: BulkChange, number: int, partition: int | None) -> TopicImage:
    """A topic with at most one of its partitions."""
    partitions: HashTrieMap[int, PartitionRegistration] = HashTrieMap()
    if partition is not None and (state := _state(bulk, number, partition)) is not None:
        partitions = partitions.insert(partition, state)
    return TopicImage(name=bulk.topic_name(number), id=bulk.topic_id(number), partitions=partitions)


def _state(bulk: BulkChange, topic: int, partition: int) -> PartitionRegistration | None:
    places = np.arange(bulk.place_count)
    places = places[(bulk.topics_at(places) == topic) & (bulk.partitions_at(places) == partition)]
    row = bulk.rows_at(places)
    if not len(places) or row[0, SHAPE] == ABSENT:
        return None
    return registration_of(tuple(row[0].tolist()), bulk.heap(), bulk.directory_ids())
