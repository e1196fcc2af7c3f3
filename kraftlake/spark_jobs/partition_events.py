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
        words = _partitions(topic.partitions)
        sentence = f"topic {topic.name} with {words} is gone"
        yield _of_topic("topic_deleted", (topic.name, str(topic.id)), sentence, before=words, after=None)
    for change in sorted(delta.changed_topics.values(), key=lambda change: change.name):
        name, topic_id = change.name, str(change.id)
        before = delta.image.get_topic_by_id(change.id)
        if before is None:
            words = _partitions(change.partition_changes)
            sentence = f"topic {name} is created with {words}"
            yield _of_topic("topic_created", (name, topic_id), sentence, before=None, after=words)
            continue
        added = [number for number in change.partition_changes if number not in before.partitions]
        if added:
            count = len(before.partitions)
            sentence = f"topic {name} has {count + len(added)} partitions, {len(added)} more than before"
            sides = {"before": str(count), "after": str(count + len(added))}
            yield _of_topic("partitions_added", (name, topic_id), sentence, field="partitions", **sides)
        for number, state in sorted(change.partition_changes.items()):
            was = before.partitions.get(number)
            for event in () if was is None else partition_events(was, state):
                yield event_row(event, name, topic_id, number)


def event_row(event: PartitionEvent, topic: str, topic_id: str, number: int) -> Event:
    """The columns of an event of a partition."""
    kind, field, before, after, words = event
    subject = f"{topic}-{number}"
    return (kind, subject, topic, topic_id, number, None, field, before, after, f"{subject} {words}")


def partition_events(before: PartitionRegistration, after: PartitionRegistration) -> Iterator[PartitionEvent]:
    """What differs between two states of a partition, in words."""
    yield from leader_events(before.leader, after.leader)
    yield from recovery_events(before.leader_recovery_state, after.leader_recovery_state)
    yield from isr_events(before.isr, after.isr)
    yield from _elr_events(before, after)
    yield from _replica_events(before, after)


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
    gone = [broker for broker in before if broker not in after]
    come = [broker for broker in after if broker not in before]
    texts = (_list(before), _list(after))
    arrow = f"{texts[0]} → {texts[1]}"
    if gone and come:
        words = f"has {_words(come)} in sync and no longer {_words(gone)}: {arrow}"
        yield PartitionEvent("isr_changed", "isr", *texts, words)
    elif gone:
        yield PartitionEvent("isr_shrank", "isr", *texts, f"has {_words(gone)} no longer in sync: {arrow}")
    elif come:
        yield PartitionEvent("isr_expanded", "isr", *texts, f"has {_words(come)} in sync as well: {arrow}")


def _elr_events(before: PartitionRegistration, after: PartitionRegistration) -> Iterator[PartitionEvent]:
    if set(before.elr) != set(after.elr):
        texts = (_list(before.elr), _list(after.elr))
        yield PartitionEvent("elr_changed", "elr", *texts, f"has other replicas eligible to lead: {' → '.join(texts)}")


def _replica_events(before: PartitionRegistration, after: PartitionRegistration) -> Iterator[PartitionEvent]:
    texts = (_list(before.replicas), _list(after.replicas))
    moves = [(state.adding_replicas, state.removing_replicas) for state in (before, after)]
    was_moving, is_moving = (any(move) for move in moves)
    if is_moving and not was_moving:
        target = _list(broker for broker in after.replicas if broker not in after.removing_replicas)
        words = f"is being reassigned: {texts[0]} → {target}"
        yield PartitionEvent("reassignment_started", "replicas", texts[0], target, words)
    elif is_moving and moves[0] != moves[1]:
        was, target = (
            _list(broker for broker in state.replicas if broker not in state.removing_replicas)
            for state in (before, after)
        )
        words = f"is being reassigned elsewhere: {target} instead of {was}"
        yield PartitionEvent("reassignment_changed", "replicas", was, target, words)
    elif was_moving and not is_moving:
        stays = [broker for broker in before.replicas if broker not in before.adding_replicas]
        arrives = [broker for broker in before.replicas if broker not in before.removing_replicas]
        if set(after.replicas) == set(stays) != set(arrives):
            words = f"is no longer reassigned and stays with {texts[1]}"
            yield PartitionEvent("reassignment_cancelled", "replicas", _list(arrives), texts[1], words)
        else:
            words = f"has been reassigned to {texts[1]}"
            yield PartitionEvent("reassignment_finished", "replicas", _list(stays), texts[1], words)
    elif not is_moving and before.replicas != after.replicas:
        words = f"has other replicas: {texts[0]} → {texts[1]}"
        yield PartitionEvent("replicas_changed", "replicas", *texts, words)


def _of_topic(
    kind: str, topic: tuple[str, str], sentence: str, *, field: str | None = None, before: str | None, after: str | None
) -> Event:
    name, topic_id = topic
    return (kind, f"topic {name}", name, topic_id, None, None, field, before, after, sentence)


def _partitions(partitions: Mapping[int, PartitionRegistration]) -> str:
    """`12 partitions, replication factor 3`."""
    factors = sorted({len(partition.replicas) for partition in partitions.values()})
    count = f"{len(partitions)} partition{'' if len(partitions) == 1 else 's'}"
    return f"{count}, replication factor {' to '.join(map(str, {factors[0]: 0, factors[-1]: 0}))}" if factors else count


def _list(brokers: Any) -> str:
    return str(list(brokers))


def _words(brokers: list[int]) -> str:
    """`2`, `2 and 3`, `1, 2 and 3`."""
    *others, last = map(str, brokers)
    return f"{', '.join(others)} and {last}" if others else last
