"""Events of topics and partitions: what differs between two states of one, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kraftlake.delta import TopicsDelta
from kraftlake.image import LeaderRecoveryState, PartitionRegistration
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kernels import event_kinds as kinds

Event = tuple[Any, ...]
"""The columns of an event from `kind` on."""


class PartitionEvent(NamedTuple):
    """What happened to a partition; `words` is the sentence without the partition in front."""

    kind: str
    field: str
    before: str | None
    after: str | None
    words: str


class Told(NamedTuple):
    """How one kind of event of a partition is told.

    `words` are its sentence without the partition in front, with places for what was `before` and is `after` it, and
    for the members of the ISR that have `gone` and `come`.
    """

    kind: str
    field: str
    words: str


PARTITION_EVENTS: Final = {
    kinds.LEADER_MOVED: Told("leader_moved", "leader", "is led by {after} instead of {before}"),
    kinds.LEADER_LOST: Told("leader_lost", "leader", "has no leader any more, it was {before}"),
    kinds.LEADER_ELECTED: Told("leader_elected", "leader", "is led by {after}, it had no leader"),
    kinds.RECOVERY_BEGUN: Told(
        "recovery_state_changed", "leader_recovery_state", "was given a leader that may lack records"
    ),
    kinds.RECOVERY_DONE: Told(
        "recovery_state_changed", "leader_recovery_state", "is done with recovering from an unclean election"
    ),
    kinds.ISR_SHRANK: Told("isr_shrank", "isr", "has {gone} no longer in sync: {before} → {after}"),
    kinds.ISR_EXPANDED: Told("isr_expanded", "isr", "has {come} in sync as well: {before} → {after}"),
    kinds.ISR_CHANGED: Told("isr_changed", "isr", "has {come} in sync and no longer {gone}: {before} → {after}"),
    kinds.ELR_CHANGED: Told("elr_changed", "elr", "has other replicas eligible to lead: {before} → {after}"),
    kinds.REASSIGNMENT_STARTED: Told("reassignment_started", "replicas", "is being reassigned: {before} → {after}"),
    kinds.REASSIGNMENT_CHANGED: Told(
        "reassignment_changed", "replicas", "is being reassigned elsewhere: {after} instead of {before}"
    ),
    kinds.REASSIGNMENT_FINISHED: Told("reassignment_finished", "replicas", "has been reassigned to {after}"),
    kinds.REASSIGNMENT_CANCELLED: Told(
        "reassignment_cancelled", "replicas", "is no longer reassigned and stays with {after}"
    ),
    kinds.REPLICAS_CHANGED: Told("replicas_changed", "replicas", "has other replicas: {before} → {after}"),
}
"""What can happen to a partition, by its number among `kraftlake.kernels.event_kinds`."""

JOINT: Final = " and "
"""What is between the last two of some brokers."""


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


def topic_deleted(name: str, topic_id: str, partitions: str) -> Event:
    """A topic is gone; `partitions` are the words for what it had."""
    sentence = f"topic {name} with {partitions} is gone"
    return _of_topic("topic_deleted", (name, topic_id), sentence, before=partitions, after=None)


def topic_created(name: str, topic_id: str, partitions: str) -> Event:
    """A topic is there; `partitions` are the words for what it has."""
    sentence = f"topic {name} is created with {partitions}"
    return _of_topic("topic_created", (name, topic_id), sentence, before=None, after=partitions)


def partitions_added(name: str, topic_id: str, count: int, added: int) -> Event:
    """A topic that had `count` partitions has more."""
    sentence = f"topic {name} has {count + added} partitions, {added} more than before"
    sides = {"before": str(count), "after": str(count + added)}
    return _of_topic("partitions_added", (name, topic_id), sentence, field="partitions", **sides)


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
        yield _told(kinds.LEADER_LOST, str(before), None)
    elif before == NO_LEADER:
        yield _told(kinds.LEADER_ELECTED, None, str(after))
    else:
        yield _told(kinds.LEADER_MOVED, str(before), str(after))


def recovery_events(before: int, after: int) -> Iterator[PartitionEvent]:
    """Whether a leader was elected that may lack records."""
    if before == after:
        return
    begun = after == LeaderRecoveryState.RECOVERING
    names = (LeaderRecoveryState(before).name, LeaderRecoveryState(after).name)
    yield _told(kinds.RECOVERY_BEGUN if begun else kinds.RECOVERY_DONE, *names)


def isr_events(before: Collection[int], after: Collection[int]) -> Iterator[PartitionEvent]:
    """Which replicas are in sync; another order is no event."""
    gone = [broker for broker in before if broker not in after]
    come = [broker for broker in after if broker not in before]
    if gone or come:
        kind = (kinds.ISR_CHANGED if come else kinds.ISR_SHRANK) if gone else kinds.ISR_EXPANDED
        yield _told(kind, _list(before), _list(after), gone=_words(gone), come=_words(come))


def elr_events(before: Collection[int], after: Collection[int]) -> Iterator[PartitionEvent]:
    """Which replicas are eligible to lead."""
    if set(before) != set(after):
        yield _told(kinds.ELR_CHANGED, _list(before), _list(after))


def replica_events(before: Hosts, after: Hosts) -> Iterator[PartitionEvent]:
    """Who hosts a partition, and is to host it."""
    moves = [(state.adding_replicas, state.removing_replicas) for state in (before, after)]
    was_moving, is_moving = (any(move) for move in moves)
    if is_moving and not was_moving:
        yield _told(kinds.REASSIGNMENT_STARTED, _list(before.replicas), _list(after.arrive))
    elif is_moving and moves[0] != moves[1]:
        yield _told(kinds.REASSIGNMENT_CHANGED, _list(before.arrive), _list(after.arrive))
    elif was_moving and not is_moving:
        if set(after.replicas) == set(before.stay) != set(before.arrive):
            yield _told(kinds.REASSIGNMENT_CANCELLED, _list(before.arrive), _list(after.replicas))
        else:
            yield _told(kinds.REASSIGNMENT_FINISHED, _list(before.stay), _list(after.replicas))
    elif not is_moving and before.replicas != after.replicas:
        yield _told(kinds.REPLICAS_CHANGED, _list(before.replicas), _list(after.replicas))


def _told(kind: int, before: str | None, after: str | None, **lists: str) -> PartitionEvent:
    told = PARTITION_EVENTS[kind]
    return PartitionEvent(told.kind, told.field, before, after, told.words.format(before=before, after=after, **lists))


def _of_topic(
    kind: str, topic: tuple[str, str], sentence: str, *, field: str | None = None, before: str | None, after: str | None
) -> Event:
    name, topic_id = topic
    return (kind, f"topic {name}", name, topic_id, None, None, field, before, after, sentence)


def _partitions(partitions: Mapping[int, PartitionRegistration]) -> str:
    factors = [len(partition.replicas) for partition in partitions.values()]
    return partition_words(len(partitions), min(factors, default=0), max(factors, default=0))


def partition_words(count: int, least: int, most: int) -> str:
    """`12 partitions, replication factor 3`; the factors are those of the partitions, if there are any."""
    words = f"{count} partition{'' if count == 1 else 's'}"
    return f"{words}, replication factor {least if least == most else f'{least} to {most}'}" if count else words


def _list(brokers: Any) -> str:
    return str(list(brokers))


def _words(brokers: Sequence[int]) -> str:
    """`2`, `2 and 3`, `1, 2 and 3`; nothing for none."""
    *others, last = map(str, brokers or ("",))
    return f"{', '.join(others)}{JOINT}{last}" if others else last
