"""The sentence on why a record of topics contradicts the change so far."""

from __future__ import annotations

from typing import Any

from kraftlake.delta.faults import taken_name
from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.metadata_records import ClearElrRecord, PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from kraftlake.runtime.errors import ReplayError


def fault_of(change: BulkChange, message: Any) -> ReplayError:
    """The error of a record of topics at which a change stopped."""
    try:
        if isinstance(message, TopicRecord):
            return _fault_of_topic(change, message)
        if isinstance(message, ClearElrRecord):
            return ReplayError(f"topic {message.topic_name!r} does not exist.")
        topic = change.number_of_id(message.topic_id)
        if topic < 0:
            return ReplayError(f"the topic with id {message.topic_id} does not exist.")
        if isinstance(message, RemoveTopicRecord):
            change.refuse_taken_names()
        elif isinstance(message, PartitionChangeRecord):
            state = change.partition(topic, message.partition_id)
            if state is None:
                return ReplayError(f"topic {change.topic_name(topic)!r} has no partition {message.partition_id}.")
            state.merge(message)
        else:
            PartitionRegistration.from_record(message)
    except ReplayError as error:
        return error
    raise AssertionError(f"{message} contradicts nothing")


def _fault_of_topic(change: BulkChange, record: TopicRecord) -> ReplayError:
    topic = change.number_of_id(record.topic_id)
    if topic >= 0 and change.topic_name(topic) != record.name:
        holder = change.topic_name(topic)
        return ReplayError(f"topic {record.name!r} gets the id {record.topic_id}, which {holder!r} has.")
    return taken_name(record.name, change.topic_id(change.topic_number(record.name)))
