"""Checks of partitions: leaders, replicas in sync, reassignments, unclean elections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import STUCK_HOURS, CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.doctor.partition_helps import follower_helps, offline_helps, reassignment_helps
from kraftlake.diagnosis.doctor.partition_times import AffectedPartition, UncleanElection, group_of
from kraftlake.diagnosis.doctor.replaced_replicas import replaced_replicas
from kraftlake.diagnosis.doctor.replica_states import ReplicaUse, state_words, states_of, waits_for
from kraftlake.diagnosis.leadership import may_lead_words
from kraftlake.image.broker_partitions import min_insync_replicas
from kraftlake.image.json_form import partition_json
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.runtime.words import counted, in_words


def _groups(ones: Iterable[AffectedPartition], reason: Callable[[AffectedPartition], str]) -> tuple[Affected, ...]:
    """The partitions by reason and time, the oldest first; partitions of one log batch have the same time."""
    found: dict[tuple[str, int | None], list[AffectedPartition]] = {}
    for one in ones:
        found.setdefault((reason(one), None if one.since is None else one.since.timestamp), []).append(one)
    groups = (group_of(why, some) for (why, _), some in found.items())
    return tuple(sorted(groups, key=lambda group: -1 if group.since is None else group.since.offset))


def _offline(case: CheckInput) -> Iterator[CheckResult]:
    replaced = replaced_replicas(case)

    def why(one: AffectedPartition) -> str:
        led_by = f"led by {one.led_by} before; " if one.led_by != NO_LEADER else ""
        lost = [f"; lay in directory {replica.lost}, which is gone" for replica in replaced.get(one.name, {}).values()]
        return led_by + may_lead_words(partition_json(case.partition(one)), case.brokers) + "".join(lost)

    every = case.timeline.partitions["offline"]
    if every:
        yield CheckResult(
            sentence=f"{_partitions(every)} no leader", groups=_groups(every, why), helps=offline_helps(case, every)
        )


def _partitions(every: Iterable[AffectedPartition]) -> str:
    count = len(tuple(every))
    return f"{counted(count, 'partition')} {'has' if count == 1 else 'have'}"


def _led(case: CheckInput, condition: str) -> list[AffectedPartition]:
    """The partitions that meet a condition and have a leader."""
    return [one for one in case.timeline.partitions[condition] if one.name not in case.offline]


def _under_min_isr(case: CheckInput) -> Iterator[CheckResult]:
    def why(one: AffectedPartition) -> str:
        state = case.partition(one)
        required = min(min_insync_replicas(case.image, one.topic), len(state.replicas))
        return f"{len(state.isr)} of {required} in sync; {_missing(case, state)}"

    every = _led(case, "under_min_isr")
    if every:
        sentence = f"{_partitions(every)} too few replicas in sync for acks=all"
        yield CheckResult(sentence=sentence, groups=_groups(every, why), helps=follower_helps(case, every))


def _under_replicated(case: CheckInput) -> Iterator[CheckResult]:
    every = _led(case, "under_replicated")
    if every:
        groups = _groups(every, lambda one: _missing(case, case.partition(one)))
        sentence = f"{_partitions(every)} a replica out of sync"
        yield CheckResult(sentence=sentence, groups=groups, helps=follower_helps(case, every))


def _missing(case: CheckInput, state: Any) -> str:
    """The replicas that are out of sync and why, as far as the brokers' states say: `out of sync: 3 (fenced)`."""
    out = sorted(set(state.replicas).difference(state.isr, state.adding_replicas))
    lists = (("out of sync", out), ("being added", waits_for(state)))
    return "; ".join(
        f"{words}: {state_words(states_of(case.image, state, brokers))}" for words, brokers in lists if brokers
    )


def _reassignments(case: CheckInput) -> Iterator[CheckResult]:
    """The reassignments; those that are old or wait for a broker that can't catch up are a fault, others are not."""
    old: list[AffectedPartition] = []
    blocked: list[AffectedPartition] = []
    running: list[AffectedPartition] = []
    inactive: set[int] = set()
    for one in case.timeline.partitions["being_reassigned"]:
        state = case.partition(one)
        states = states_of(case.image, state, waits_for(state))
        waits = [broker for broker, of_replica in states.items() if of_replica is not ReplicaUse.ACTIVE]
        age = case.age_ms(one.since)
        is_old = age is not None and age >= STUCK_HOURS * 3_600_000
        (old if is_old else blocked if waits else running).append(one)
        inactive.update(() if is_old else waits)
    brokers = "a broker that is" if len(inactive) == 1 else "brokers that are"

    def why(one: AffectedPartition) -> str:
        state = case.partition(one)
        waits = state_words(states_of(case.image, state, waits_for(state)))
        target = [broker for broker in state.replicas if broker not in state.removing_replicas]
        status = f"waits for {waits} to be in sync" if waits else "waits for the controller"
        return f"to {in_words(target)}; {status}"

    for some, severity, words in (
        (old, Severity.WARNING, "does not end"),
        (blocked, Severity.WARNING, f"waits for {brokers} not active"),
        (running, Severity.INFO, "is under way"),
    ):
        if some:
            sentence = f"the reassignment of {counted(len(some), 'partition')} {words}"
            helps = reassignment_helps(case, some)
            yield CheckResult(sentence=sentence, groups=_groups(some, why), severity=severity, helps=helps)


def _recovering(case: CheckInput) -> Iterator[CheckResult]:
    every = case.timeline.partitions["recovering"]
    if every:
        sentence = f"{_partitions(every)} a leader from an unclean election that has not recovered"
        if len(every) > 1:
            sentence = f"{counted(len(every), 'partition')} have leaders from unclean elections that have not recovered"
        yield CheckResult(sentence=sentence, groups=_groups(every, lambda one: _led_by(case.partition(one))))


def _led_by(state: Any) -> str:
    return "no leader now" if state.leader == NO_LEADER else f"led by {state.leader}"


def _unclean(case: CheckInput) -> Iterator[CheckResult]:
    elections = case.timeline.unclean
    if not elections:
        return
    found: dict[tuple[int, int | None], list[UncleanElection]] = {}
    for one in elections:
        found.setdefault((one.leader, one.at.timestamp), []).append(one)
    groups = tuple(
        Affected(reason=f"broker {leader} was elected", since=some[0].at, things=tuple(one.partition for one in some))
        for (leader, _), some in found.items()
    )
    partitions = counted(len({one.partition for one in elections}), "partition")
    sentence = f"{counted(len(elections), 'unclean election')} of {partitions}: records may be lost{case.read_from}"
    yield CheckResult(sentence=sentence, groups=groups, lasts=False)


PARTITION_CHECKS = (
    Check(
        name="offline_partitions",
        severity=Severity.CRITICAL,
        text="partitions without a leader",
        command="image {source} --unavailable-partitions{at}",
        helps=safe("Start the brokers of these partitions: none of their replicas is known to have all records."),
        find=_offline,
    ),
    Check(
        name="under_min_isr",
        severity=Severity.CRITICAL,
        text="partitions with fewer replicas in sync than acks=all asks for",
        command="image {source} --under-min-isr-partitions{at}",
        helps=safe("Wait until the replicas that are being added are in sync; producers with acks=all wait for them."),
        find=_under_min_isr,
    ),
    Check(
        name="under_replicated",
        severity=Severity.WARNING,
        text="partitions with a replica out of sync",
        command="events {source} --kind shrink{range}",
        state_command="image {source} --under-replicated-partitions{at}",
        helps=safe("Look at the log of the leaders of these partitions."),
        find=_under_replicated,
    ),
    Check(
        name="reassignments",
        severity=Severity.WARNING,
        text="reassignments that are under way, that do not end, or that wait for a broker that is not active",
        command="events {source} --kind reassignment{range}",
        state_command="image {source} --part topics --all{at}",
        helps=safe("The controller ends it, as all new replicas are in sync. If it does not, look at its log."),
        find=_reassignments,
    ),
    Check(
        name="recovering_leaders",
        severity=Severity.WARNING,
        text="leaders from unclean elections that have not recovered",
        command="events {source} --kind unclean{range}",
        state_command="image {source} --part topics --all{at}",
        helps=safe("A leader recovers when it has started to lead. If it does not, look at that broker's log."),
        find=_recovering,
    ),
    Check(
        name="unclean_elections",
        severity=Severity.WARNING,
        text="leaders that were elected lately although they may lack records",
        command="events {source} --kind unclean{range}",
        helps=safe(
            "Compare with what producers have sent since the last leader in sync was lost. To rule it out: "
            "unclean.leader.election.enable=false, and min.insync.replicas of 2 or more."
        ),
        find=_unclean,
    ),
)
"""The checks of partitions."""
