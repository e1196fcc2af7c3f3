"""Events of topics and partitions: what differs between two states of one, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from kraftlake.delta import TopicsDelta
from kraftlake.image import LeaderRecoveryState, PartitionRegistration
from kraftlake.image.partition_registration import NO_LEADER

Event = tuple[Any, ...]
"""The columns of an event from `kind` on."""


class PartitionEvent(NamedTuple):
    """What happened to a partition; `words` is the sentence without the partition in front."""

    kind: str
    field: str
    before: str | None
    after: str | None
    words: str


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
        yield PartitionEvent("leader_lost", "leader", str(before), None, f"has no leader any more, it was {before}")
    elif before == NO_LEADER:
        yield PartitionEvent("leader_elected", "leader", None, str(after), f"is led by {after}, it had no leader")
    else:
        yield PartitionEvent(
            "leader_moved", "leader", str(before), str(after), f"is led by {after} instead of {before}"
        )


def recovery_events(before: int, after: int) -> Iterator[PartitionEvent]:
    """Whether a leader was elected that may lack records."""
    if before == after:
        return
    names = (LeaderRecoveryState(before).name, LeaderRecoveryState(after).name)
    if after == LeaderRecoveryState.RECOVERING:
        words = "was given a leader that may lack records"
    else:
        words = "is done with recovering from an unclean election"
    yield PartitionEvent("recovery_state_changed", "leader_recovery_state", *names, words)


def isr_events(before: Collection[int], after: Collection[int]) -> Iterator[PartitionEvent]:
    """Which replicas are in sync; another order is no event."""
    kind, words = isr_words(
        [broker for broker in before if broker not in after], [broker for broker in after if broker not in before]
    )
    if kind is not None:
        texts = (_list(before), _list(after))
        yield PartitionEvent(kind, "isr", *texts, f"{words}{texts[0]} → {texts[1]}")


def isr_words(gone: list[int], come: list[int]) -> tuple[str | None, str]:
    """The kind of an event of an ISR, None for none, and its words up to the lists before and after it."""
    if gone and come:
        return "isr_changed", f"has {_words(come)} in sync and no longer {_words(gone)}: "
    if gone:
        return "isr_shrank", f"has {_words(gone)} no longer in sync: "
    if come:
        return "isr_expanded", f"has {_words(come)} in sync as well: "
    return None, ""


def elr_events(before: Collection[int], after: Collection[int]) -> Iterator[PartitionEvent]:
    """Which replicas are eligible to lead."""
    if set(before) != set(after):
        texts = (_list(before), _list(after))
        yield PartitionEvent("elr_changed", "elr", *texts, f"has other replicas eligible to lead: {' → '.join(texts)}")


def replica_events(before: Hosts, after: Hosts) -> Iterator[PartitionEvent]:
    """Who hosts a partition, and is to host it."""
    texts = (_list(before.replicas), _list(after.replicas))
    moves = [(state.adding_replicas, state.removing_replicas) for state in (before, after)]
    was_moving, is_moving = (any(move) for move in moves)
    if is_moving and not was_moving:
        target = _list(after.arrive)
        words = f"is being reassigned: {texts[0]} → {target}"
        yield PartitionEvent("reassignment_started", "replicas", texts[0], target, words)
    elif is_moving and moves[0] != moves[1]:
        was, target = (_list(state.arrive) for state in (before, after))
        words = f"is being reassigned elsewhere: {target} instead of {was}"
        yield PartitionEvent("reassignment_changed", "replicas", was, target, words)
    elif was_moving and not is_moving:
        if set(after.replicas) == set(before.stay) != set(before.arrive):
            words = f"is no longer reassigned and stays with {texts[1]}"
            yield PartitionEvent("reassignment_cancelled", "replicas", _list(before.arrive), texts[1], words)
        else:
            words = f"has been reassigned to {texts[1]}"
            yield PartitionEvent("reassignment_finished", "replicas", _list(before.stay), texts[1], words)
    elif not is_moving and before.replicas != after.replicas:
        words = f"has other replicas: {texts[0]} → {texts[1]}"
        yield PartitionEvent("replicas_changed", "replicas", *texts, words)


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


def _words(brokers: list[int]) -> str:
    """`2`, `2 and 3`, `1, 2 and 3`."""
    *others, last = map(str, brokers)
    return f"{', '.join(others)} and {last}" if others else last
