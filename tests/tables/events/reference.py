"""The events of published changes, made one by one of objects alone: what the rows of `events/` are compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics.partition_registration import NO_LEADER, LeaderRecoveryState, PartitionRegistration
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.queries.changes import Published
from kraftlake.tables.events.events_table import Event
from kraftlake.tables.events.non_topic_events import election_event, non_topic_events, quorum_events


class PartitionEvent(NamedTuple):
    """What happened to a partition; `words` is the sentence without the partition at its beginning."""

    kind: str
    field: str
    before: str | None
    after: str | None
    words: str


_EVENTS = {
    "LEADER_MOVED": ("leader_moved", "leader", "is led by {after} instead of {before}"),
    "LEADER_LOST": ("leader_lost", "leader", "has no leader any more, it was {before}"),
    "LEADER_ELECTED": ("leader_elected", "leader", "is led by {after}, it had no leader"),
    "RECOVERY_BEGUN": ("recovery_state_changed", "leader_recovery_state", "was given a leader that may lack records"),
    "RECOVERY_DONE": (
        "recovery_state_changed",
        "leader_recovery_state",
        "is done with recovering from an unclean election",
    ),
    "ISR_SHRANK": ("isr_shrank", "isr", "has {gone} no longer in sync: {before} → {after}"),
    "ISR_EXPANDED": ("isr_expanded", "isr", "has {come} in sync as well: {before} → {after}"),
    "ISR_CHANGED": ("isr_changed", "isr", "has {come} in sync and no longer {gone}: {before} → {after}"),
    "ELR_CHANGED": ("elr_changed", "elr", "has other replicas eligible to lead: {before} → {after}"),
    "REASSIGNMENT_STARTED": ("reassignment_started", "replicas", "is being reassigned: {before} → {after}"),
    "REASSIGNMENT_CHANGED": (
        "reassignment_changed",
        "replicas",
        "is being reassigned elsewhere: {after} instead of {before}",
    ),
    "REASSIGNMENT_FINISHED": ("reassignment_finished", "replicas", "has been reassigned to {after}"),
    "REASSIGNMENT_CANCELLED": ("reassignment_cancelled", "replicas", "is no longer reassigned and stays with {after}"),
    "REPLICAS_CHANGED": ("replicas_changed", "replicas", "has other replicas: {before} → {after}"),
}


def quorum_at(batches: Iterable[RecordBatch], offset: int) -> QuorumState:
    """The state of the quorum after an offset, by the control records up to there."""
    state = QuorumState()
    for batch in batches:
        state = state.after(batch, 0, offset)
    return state


def change_events(
    change: Published, batches: Iterable[RecordBatch], *, show_secrets: bool = False
) -> Iterator[tuple[Any, ...]]:
    """The rows of a change, by what they are of: quorum, topics and partitions, all else; none of a snapshot's load.

    `batches` are the control batches of the log.
    """
    if change.of_snapshot:
        return
    head = (change.offset, change.epoch, change.timestamp)
    if change.elected is not None:
        yield (*head, *election_event(change.elected, change.epoch))
    offsets = change.before.provenance.offset, change.offset
    for event in quorum_events(*(quorum_at(batches, offset) for offset in offsets)):
        yield (*head, *event)
    if change.delta.topics_delta is not None:
        for event in topic_events(change.delta.topics_delta):
            yield (*head, *event)
    for event in non_topic_events([change.delta], change.image, show_secrets=show_secrets):
        yield (*head, *event)


def topic_events(delta: TopicsDelta) -> Iterator[Event]:
    """The events of a delta: of topics that are gone, by name, then of the others, each with its partitions' ones."""
    deleted = [topic for id_ in delta.deleted_topic_ids if (topic := delta.image.get_topic_by_id(id_)) is not None]
    for topic in sorted(deleted, key=lambda topic: topic.name):
        yield topic_deleted(topic.name, str(topic.id), _partitions(topic.partitions))
    for change in sorted(delta.changed_topics.values(), key=lambda change: change.name):
        name, topic_id = change.name, str(change.id)
        before = delta.image.get_topic_by_id(change.id)
        if before is None:
            yield topic_created(name, topic_id, _partitions(change.partition_changes))
            continue
        added = [number for number in change.partition_changes if number not in before.partitions]
        if added:
            yield partitions_added(name, topic_id, len(before.partitions), len(added))
        for number, state in sorted(change.partition_changes.items()):
            was = before.partitions.get(number)
            for event in () if was is None else partition_events(was, state):
                yield event_row(event, name, topic_id, number)


def event_row(event: PartitionEvent, topic: str, topic_id: str, number: int) -> Event:
    """The columns of an event of a partition."""
    kind, field, before, after, words = event
    subject = f"{topic}-{number}"
    return (kind, subject, topic, topic_id, number, None, field, before, after, f"{subject} {words}")


class Hosts(NamedTuple):
    """Who hosts a partition."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def stay(self) -> list[int]:
        """The replicas without those that are being added."""
        return [broker for broker in self.replicas if broker not in self.adding_replicas]

    @property
    def arrive(self) -> list[int]:
        """The replicas without those that are being removed."""
        return [broker for broker in self.replicas if broker not in self.removing_replicas]


def partition_events(before: PartitionRegistration, after: PartitionRegistration) -> Iterator[PartitionEvent]:
    """What differs between two states of a partition, in words."""
    yield from leader_events(before.leader, after.leader)
    yield from recovery_events(before.leader_recovery_state, after.leader_recovery_state)
    yield from isr_events(before.isr, after.isr)
    yield from elr_events(before.elr, after.elr)
    yield from replica_events(
        *(Hosts(state.replicas, state.adding_replicas, state.removing_replicas) for state in (before, after))
    )


def leader_events(before: int, after: int) -> Iterator[PartitionEvent]:
    """Who leads a partition."""
    if before == after:
        return
    if after == NO_LEADER:
        yield _event("LEADER_LOST", str(before), None)
    elif before == NO_LEADER:
        yield _event("LEADER_ELECTED", None, str(after))
    else:
        yield _event("LEADER_MOVED", str(before), str(after))


def recovery_events(before: int, after: int) -> Iterator[PartitionEvent]:
    """Whether a leader was elected that may lack records."""
    if before == after:
        return
    begun = after == LeaderRecoveryState.RECOVERING
    names = (LeaderRecoveryState(before).name, LeaderRecoveryState(after).name)
    yield _event("RECOVERY_BEGUN" if begun else "RECOVERY_DONE", *names)


def isr_events(before: Collection[int], after: Collection[int]) -> Iterator[PartitionEvent]:
    """Which replicas are in sync; another order is no event."""
    gone = [broker for broker in before if broker not in after]
    come = [broker for broker in after if broker not in before]
    if gone or come:
        kind = ("ISR_CHANGED" if come else "ISR_SHRANK") if gone else "ISR_EXPANDED"
        yield _event(kind, _list(before), _list(after), gone=_words(gone), come=_words(come))


def elr_events(before: Collection[int], after: Collection[int]) -> Iterator[PartitionEvent]:
    """Which replicas are eligible to lead."""
    if set(before) != set(after):
        yield _event("ELR_CHANGED", _list(before), _list(after))


def replica_events(before: Hosts, after: Hosts) -> Iterator[PartitionEvent]:
    """Who hosts a partition, and is to host it."""
    moves = [(state.adding_replicas, state.removing_replicas) for state in (before, after)]
    was_moving, is_moving = (any(move) for move in moves)
    if is_moving and not was_moving:
        yield _event("REASSIGNMENT_STARTED", _list(before.replicas), _list(after.arrive))
    elif is_moving and moves[0] != moves[1]:
        yield _event("REASSIGNMENT_CHANGED", _list(before.arrive), _list(after.arrive))
    elif was_moving and not is_moving:
        if set(after.replicas) == set(before.stay) != set(before.arrive):
            yield _event("REASSIGNMENT_CANCELLED", _list(before.arrive), _list(after.replicas))
        else:
            yield _event("REASSIGNMENT_FINISHED", _list(before.stay), _list(after.replicas))
    elif not is_moving and before.replicas != after.replicas:
        yield _event("REPLICAS_CHANGED", _list(before.replicas), _list(after.replicas))


def _event(name: str, before: str | None, after: str | None, **lists: str) -> PartitionEvent:
    kind, field, words = _EVENTS[name]
    return PartitionEvent(kind, field, before, after, words.format(before=before, after=after, **lists))


def _partitions(partitions: Mapping[int, PartitionRegistration]) -> str:
    factors = [len(partition.replicas) for partition in partitions.values()]
    return partitions_in_words(len(partitions), min(factors, default=0), max(factors, default=0))


def _list(brokers: Any) -> str:
    return str(list(brokers))


def _words(brokers: Sequence[int]) -> str:
    """`2`, `2 and 3`, `1, 2 and 3`; nothing for none."""
    *others, last = map(str, brokers or ("",))
    return f"{', '.join(others)} and {last}" if others else last


def topic_created(name: str, topic_id: str, partitions: str) -> Event:
    """The event of a topic that is new; `partitions` are those that it has: see `partitions_in_words`."""
    return _topic_event("topic_created", (name, topic_id), f"is created with {partitions}", after=partitions)


def topic_deleted(name: str, topic_id: str, partitions: str) -> Event:
    """The event of a topic that is gone; `partitions` are those that it had: see `partitions_in_words`."""
    return _topic_event("topic_deleted", (name, topic_id), f"with {partitions} is gone", before=partitions)


def partitions_added(name: str, topic_id: str, count: int, added: int) -> Event:
    """The event of a topic that had `count` partitions and has `added` more."""
    total = count + added
    sides = {"field": "partitions", "before": f"{count}", "after": f"{total}"}
    return _topic_event(
        "partitions_added", (name, topic_id), f"has {total} partitions, {added} more than before", **sides
    )


def partitions_in_words(count: int, least: int, most: int) -> str:
    """`12 partitions, replication factor 3`; the factors are those of the partitions, if there are any."""
    words = f"{count} partition{'' if count == 1 else 's'}"
    return f"{words}, replication factor {least if least == most else f'{least} to {most}'}" if count else words


def _topic_event(
    kind: str,
    topic: tuple[str, str],
    words: str,
    *,
    field: str | None = None,
    before: str | None = None,
    after: str | None = None,
) -> Event:
    name, topic_id = topic
    return (kind, f"topic {name}", name, topic_id, None, None, field, before, after, f"topic {name} {words}")
