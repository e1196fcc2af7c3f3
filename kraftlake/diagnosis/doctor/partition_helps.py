"""Remedies for partitions in trouble: by the states of their replicas, with the cost where these do not suffice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.help import Help, HelpRisk
from kraftlake.diagnosis.doctor.partition_times import AffectedPartition, group_of
from kraftlake.diagnosis.doctor.replaced_replicas import replaced_replicas
from kraftlake.diagnosis.doctor.replica_states import (
    ReplicaStates,
    ReplicaUse,
    may_lead,
    state_words,
    states_of,
    waits_for,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.runtime.words import counted, in_words

_LEADERS: Final = {
    ReplicaUse.FENCED: "Start {brokers} with the log directories {they} had: {they} may lead {of} again. Do not "
    "start {it} on an empty disk: the other replicas would drop what an empty leader lacks.",
    ReplicaUse.SHUTTING_DOWN: "Start {brokers} again after {its} shutdown: {they} may lead {of}.",
    ReplicaUse.NO_DIRECTORY: "Bring back the log directories of {brokers} that are offline, and restart {it}: {of} "
    "may be led from there. Do not put empty disks in their place before that has failed.",
    ReplicaUse.REPLACED: "Give {brokers} the old disk again: {its} replicas of {of} were made anew without the "
    "records (replaced_directories). Do not restart {it} before that has failed: such a replica would lead.",
    ReplicaUse.NOT_REGISTERED: "Start {brokers} with the log directories {they} had: {they} register{s} again and "
    "may lead {of}.",
    ReplicaUse.ACTIVE: "Look at the log of the active controller: {brokers} may lead {of} and {was} not elected. It "
    "elects {it} when {it} {is_} unfenced, and so after a restart.",
}
"""The remedies that bring back the brokers that may lead a partition without a loss."""

_FOLLOWERS: Final = {
    ReplicaUse.FENCED: "Start {brokers}: {its} replicas of {of} catch up.",
    ReplicaUse.SHUTTING_DOWN: "Start {brokers} again after {its} shutdown: {its} replicas of {of} catch up.",
    ReplicaUse.NO_DIRECTORY: "Bring back the log directories of {brokers} that are offline, with {of}, and restart "
    "{it}. Replace them only if other brokers lead all that lay there (offline_directories): it is copied from these.",
    ReplicaUse.NOT_REGISTERED: "Start {brokers}: {they} register{s} again, and {its} replicas of {of} catch up.",
    ReplicaUse.ACTIVE: "Look at the disks, the network and the throttles of {brokers}: {they} run{s}, and {its} "
    "replicas of {of} do not catch up.",
}
"""The remedies that bring back replicas that are out of sync while another replica leads."""


def offline_helps(case: CheckInput, every: Sequence[AffectedPartition]) -> tuple[Help, ...]:
    """Remedies that restore leaders: start eligible brokers; an unclean election only where all of these are lost."""
    states = ReplicaStates()
    lost: dict[str, list[AffectedPartition]] = defaultdict(list)
    stranded: list[str] = []
    replaced = replaced_replicas(case)
    for one in every:
        partition = case.partition(one)
        of_leaders = states_of(case.image, partition, may_lead(partition))
        of_leaders |= dict.fromkeys(of_leaders.keys() & replaced.get(one.name, {}).keys(), ReplicaUse.REPLACED)
        of_leaders |= dict.fromkeys({*partition.elr}.difference(partition.replicas), ReplicaUse.REMOVED)
        for broker, state in of_leaders.items():
            states.add(state, broker, one.name)
        if not all(state.is_lost for state in of_leaders.values()):
            continue
        others = sorted(set(partition.replicas).difference(of_leaders))
        active = [b for b in others if ReplicaUse.of(case.image, partition, b) is ReplicaUse.ACTIVE]
        if active:
            lost[_why_lost(of_leaders, active)].append(one)
        else:
            stranded.append(one.name)
    return (*states.helps(_LEADERS), *_unclean_elections(lost), *_stranded(stranded))


def _why_lost(of_leaders: dict[int, ReplicaUse], active: Sequence[int]) -> str:
    candidates = f"may lead: {state_words(of_leaders)}" if of_leaders else "no replica was in sync"
    return f"{candidates}; active and out of sync: {', '.join(map(str, active))}"


def _unclean_elections(lost: dict[str, list[AffectedPartition]]) -> Iterator[Help]:
    if not lost:
        return
    count = sum(map(len, lost.values()))
    yield Help(
        action=f"If these brokers or disks are lost for good, an unclean election gives {counted(count, 'partition')} "
        "a leader: kafka-leader-election.sh --election-type UNCLEAN --topic TOPIC --partition NUMBER, one by one.",
        risk=HelpRisk.UNCLEAN_ELECTION,
        evidence=tuple(group_of(reason, some) for reason, some in lost.items()),
        cost="The records that the new leader lacks are lost, acknowledged ones too: what was written after it fell "
        "out of sync. Replicas that come back later drop them as well.",
    )


def _stranded(names: Sequence[str]) -> Iterator[Help]:
    if names:
        have = "has" if len(names) == 1 else "have"
        shown = _shown(names)
        yield Help(action=f"Nothing else gives a leader now: {shown} {have} no other replica on an active broker.")


def _shown(names: Sequence[str]) -> str:
    """The first names, or the number of names where they are many."""
    return in_words(names) if len(names) <= _NAMED else counted(len(names), "partition")


_NAMED: Final = 3


def follower_helps(case: CheckInput, every: Iterable[AffectedPartition]) -> tuple[Help, ...]:
    """Remedies that bring the replicas of some partitions into sync."""
    states = ReplicaStates()
    for one in every:
        partition = case.partition(one)
        for broker in set(partition.replicas).difference(partition.isr, partition.adding_replicas):
            states.add(ReplicaUse.of(case.image, partition, broker), broker, one.name)
    return tuple(states.helps(_FOLLOWERS))


def reassignment_helps(case: CheckInput, every: Sequence[AffectedPartition]) -> tuple[Help, ...]:
    """Remedies that end reassignments; a cancellation only where one waits in vain and can be taken back."""
    states = ReplicaStates()
    stuck: dict[str, list[AffectedPartition]] = defaultdict(list)
    no_way_back: list[str] = []
    for one in every:
        partition = case.partition(one)
        waits = states_of(case.image, partition, waits_for(partition))
        for broker, state in waits.items():
            states.add(state, broker, one.name)
        if waits and ReplicaUse.ACTIVE not in waits.values():
            back = _way_back(case.image, partition)
            if back:
                stuck[_why_cancel(waits, back)].append(one)
            else:
                no_way_back.append(one.name)
    return (*states.helps(_TARGETS), *_throttled(case), *_cancellation(stuck), *_no_way_back(no_way_back))


_TARGETS: Final = {
    **_FOLLOWERS,
    ReplicaUse.FENCED: "Start {brokers}: the reassignment of {of} waits for {it}.",
    ReplicaUse.NOT_REGISTERED: "Start {brokers}: the reassignment of {of} waits for {it}, and {they} {is_} not "
    "registered.",
    ReplicaUse.ACTIVE: "Look at the disks and the network of {brokers}, which {is_} active: the reassignment of {of} "
    "waits for {it} to catch up.",
}
"""The remedies that let the new replicas of a reassignment catch up."""


def _way_back(image: MetadataImage, partition: Any) -> list[int]:
    """The replicas that a cancelled reassignment returns to and that are usable: in sync, on an active broker."""
    originals = [broker for broker in partition.isr if broker not in partition.adding_replicas]
    return [b for b in originals if ReplicaUse.of(image, partition, b) is ReplicaUse.ACTIVE]


def _why_cancel(waits: dict[int, ReplicaUse], back: Sequence[int]) -> str:
    are = "is" if len(back) == 1 else "are"
    return f"waits for {state_words(waits)}; of the replicas before it {in_words(back)} {are} in sync"


def _throttled(case: CheckInput) -> Iterator[Help]:
    set_ = [
        f"{name}={value} of {resource.type_name.lower()} {resource.name or '(default)'}"
        for resource, configs in sorted(case.image.configs.resource_data.items())
        for name, value in sorted(configs.data.items())
        if name.endswith(".replication.throttled.rate") and value
    ]
    if set_:
        more = f" and {len(set_) - _NAMED} more" if len(set_) > _NAMED else ""
        yield Help(action=f"Raise the throttles (kafka-configs.sh --alter): {', '.join(set_[:_NAMED])}{more}.")


def _cancellation(stuck: dict[str, list[AffectedPartition]]) -> Iterator[Help]:
    if stuck:
        count = sum(map(len, stuck.values()))
        yield Help(
            action=f"If these brokers don't come back, take the reassignment of {counted(count, 'partition')} back: "
            "kafka-reassign-partitions.sh --cancel, with a file that names these alone.",
            risk=HelpRisk.CANCEL,
            evidence=tuple(group_of(reason, some) for reason, some in stuck.items()),
            cost="The new replicas are deleted with all that they have copied, and the partitions stay on the brokers "
            "that they were to leave.",
        )


def _no_way_back(names: Sequence[str]) -> Iterator[Help]:
    if names:
        yield Help(
            action=f"Do not take the reassignment of {_shown(names)} back: none of the replicas before it is in sync "
            "on an active broker."
        )
