"""Finds the record that caused a transition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER_CHANGE
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import type_name
from kraftlake.records.serde import UNKNOWN, AnyMessage, UnknownRecord, decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.log_position import OpenTransaction
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.errors import CorruptDataError, ReplayError

_ROLE_CHANGES = (TransitionKind.BECAME_LEADER, TransitionKind.BECAME_FOLLOWER, TransitionKind.FETCHING_STARTED)
_OF_THE_BROKER = (TransitionKind.BROKER_STARTED, TransitionKind.SHUTDOWN_BEGUN, TransitionKind.DIRECTORY_FAILED)


@attrs.frozen(weakref_slot=False)
class Cause:
    """A record: its offset, and its type as in Kafka's dump tool; SNAPSHOT means a whole snapshot."""

    offset: int
    type: str


class RecordIndex:
    """The records of one delta by partition, topic and broker.

    `messages` are pairs (offset, record) in the order in which they take effect.
    """

    def __init__(self, messages: Iterable[tuple[int, AnyMessage]], broker_id: int) -> None:
        self._of_partition: dict[tuple[Uuid, int], list[tuple[Cause, AnyMessage]]] = {}
        self._removed: dict[Uuid, Cause] = {}
        self._elr_cleared: Cause | None = None
        self.of_broker: Cause | None = None
        """The last record of the broker's own registration."""
        self.last: Cause | None = None
        """The last record."""
        for offset, message in messages:
            cause = Cause(offset, UNKNOWN if isinstance(message, UnknownRecord) else type_name(type(message)))
            self.last = cause
            if isinstance(message, r.PartitionRecord | r.PartitionChangeRecord):
                key = (message.topic_id, message.partition_id)
                self._of_partition.setdefault(key, []).append((cause, message))
            elif isinstance(message, r.RemoveTopicRecord):
                self._removed[message.topic_id] = cause
            elif isinstance(message, r.ClearElrRecord):
                self._elr_cleared = cause
            elif _is_of_broker(message, broker_id):
                self.of_broker = cause

    def of_partition(self, topic_ids: Sequence[Uuid], partition: int, kind: TransitionKind) -> Cause | None:
        """Return the record that caused a transition of a partition; `topic_ids` are all ids of its topic's name.

        Of several records, a change of role is caused by the last one that names a leader, and any other transition by
        the last one.
        """
        if kind in (TransitionKind.LOG_DELETED, TransitionKind.LOG_DELETE_FAILED):
            for topic_id in topic_ids:
                if topic_id in self._removed:
                    return self._removed[topic_id]
        for topic_id in reversed(topic_ids):
            found = self._of_partition.get((topic_id, partition))
            if found:
                if kind in _ROLE_CHANGES:
                    found = [pair for pair in found if _names_leader(pair[1])] or found
                return found[-1][0]
        return self._elr_cleared


def _names_leader(message: AnyMessage) -> bool:
    return isinstance(message, r.PartitionRecord) or (
        isinstance(message, r.PartitionChangeRecord) and message.leader != NO_LEADER_CHANGE
    )


def _is_of_broker(message: AnyMessage, broker_id: int) -> bool:
    registration = isinstance(message, r.RegisterBrokerRecord | r.BrokerRegistrationChangeRecord)
    return registration and message.broker_id == broker_id  # type: ignore[union-attr]


def causes_of(
    transitions: Sequence[Transition],
    index: RecordIndex,
    before: MetadataImage,
    after: MetadataImage,
    *,
    restarted: bool,
) -> list[Cause | None]:
    """Return the cause of each transition.

    The transitions of a started broker come from its registration. A fetcher's start has the cause of its first
    partition, and its stop the cause of the previous transition.
    """
    found: list[Cause | None] = []
    for transition in transitions:
        name = transition.partition
        if restarted or transition.kind in _OF_THE_BROKER:
            found.append(index.of_broker)
        elif name is None:
            found.append(None)
        else:
            found.append(index.of_partition(_ids_of(name, before, after), name.partition, transition.kind))
    following: Cause | None = None
    for place in range(len(found) - 1, -1, -1):
        if found[place] is not None:
            following = found[place]
        elif transitions[place].kind is TransitionKind.FETCHER_STARTED:
            found[place] = following
    previous: Cause | None = None
    for place, cause in enumerate(found):
        previous = cause or previous or index.of_broker or index.last
        found[place] = previous
    return found


def _ids_of(name: TopicPartition, before: MetadataImage, after: MetadataImage) -> list[Uuid]:
    topics = [image.topics.get_topic(name.topic) for image in (before, after)]
    return [topic.id for topic in topics if topic is not None]


class UnpublishedRecords:
    """The records of unpublished batches, in the order in which they take effect.

    The records of a metadata transaction take effect at its end, or never. Batches are decoded on demand.
    """

    def __init__(self) -> None:
        self._batches: list[RecordBatch] = []
        self._done = -1

    def add(self, batch: RecordBatch) -> None:
        """Add a batch."""
        self._batches.append(batch)

    def published(self, to_offset: int) -> None:
        """Drop the records up to and including `to_offset`, which are published."""
        self._done = to_offset
        if self._batches and self._batches[-1].last_offset <= to_offset:
            self._batches.clear()

    def messages(self, to_offset: int) -> list[tuple[int, AnyMessage]]:
        """The (offset, record) pairs that take effect after the last publication, up to and including `to_offset`."""
        effective, transaction = list[tuple[int, AnyMessage]](), OpenTransaction[tuple[int, AnyMessage]]()
        for offset, message in self._decoded(to_offset):
            with suppress(ReplayError):  # a lenient replay has left the mark out, too
                effective += transaction.take(message, offset, (offset, message))
                effective += [(offset, message)] if isinstance(message, r.EndTransactionRecord) else []
        return effective

    def _decoded(self, to_offset: int) -> Iterable[tuple[int, AnyMessage]]:
        for batch in self._batches:
            if batch.control:
                continue
            for offset, value in enumerate(batch.values, start=batch.base_offset):
                if self._done < offset <= to_offset:
                    try:
                        yield offset, decode_value(value).message
                    except CorruptDataError:
                        continue  # a lenient replay has skipped the record too
