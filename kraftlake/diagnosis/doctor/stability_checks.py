"""Checks of events that are too frequent in a window: fencings, ISR changes, elections of the quorum, their totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kraftlake.diagnosis.doctor.activity import Dropout
from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected, LogPosition
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.doctor.registration_history import Registered, incarnations, place_at
from kraftlake.diagnosis.leadership import broker_words
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.runtime.words import counted, duration

FLAPS: Final = 3
"""The number of fencings of a broker, or of ISR departures of a replica, from which on it flaps."""
UNUSUAL: Final = 3
"""A count above this multiple of the usual one is unusual."""
_FEW: Final = 5
"""The lowest count that can be unusual."""


def _is_recent(case: CheckInput, at: LogPosition | None) -> bool:
    return at is not None and at.timestamp is not None and at.timestamp >= case.window_begin


def _counts(case: CheckInput, positions: Iterable[LogPosition | None]) -> tuple[int, int]:
    """The number of positions within the window, and of those before it."""
    known = [_is_recent(case, at) for at in positions if at is not None]
    return sum(known), len(known) - sum(known)


def _usual(case: CheckInput, earlier: int) -> float | None:
    """The average number in a window before this one; None where the log is too short for an average."""
    first = case.timeline.activity.first
    span = case.window_begin - first
    return earlier * case.window_ms / span if first >= 0 and span >= max(1, case.window_ms) else None


def _usual_words(case: CheckInput, **earlier: int) -> str:
    """`usually 0.2 fencings`, for each count of the time before the window."""
    averages = [(name, _usual(case, count)) for name, count in earlier.items()]
    if any(usual is None for _, usual in averages):
        return "the log has no earlier time to compare with"
    return f"usually {', '.join(f'{_number(usual or 0)} {name}' for name, usual in averages)}"


def _number(usual: float) -> str:
    return f"{usual:,.0f}" if usual >= 10 else f"{usual:.1f}"


def _is_unusual(usual: float | None, count: int) -> bool:
    return usual is None or count > UNUSUAL * usual


def _window(case: CheckInput) -> str:
    """The window in words; for a shorter log, the whole log."""
    first = case.timeline.activity.first
    is_all = first > case.window_begin
    length = case.end_ms - first if is_all else case.window_ms
    return f"in the {'' if is_all else 'last '}{duration(length)} of the log{case.read_from}"


def _fencings(case: CheckInput) -> Iterator[CheckResult]:
    """Brokers that were fenced repeatedly; if each time by a controlled shutdown, the finding is a note."""
    history, activity = case.timeline.registrations, case.timeline.activity
    found: dict[Severity, list[tuple[int, int, Affected]]] = {Severity.WARNING: [], Severity.INFO: []}
    for broker in sorted(history.brokers):
        every = history.losses(broker)
        fenced = [loss for loss in every if _is_recent(case, loss.at)]
        if len(fenced) < FLAPS:
            continue
        orderly = sum(loss.orderly for loss in fenced)
        starts, earlier_starts = _counts(case, [one.at for one in history.starts(broker)])
        counts = (
            f"fenced {counted(len(fenced), 'time')}, {orderly} after a controlled shutdown; "
            f"{counted(starts, 'start')}, {counted(activity.recent.lost_leaderships[broker], 'lost leadership')}, "
            f"{counted(activity.recent.dropouts[broker], 'replica')} out of sync"
        )
        usual = _usual_words(case, fencings=len(every) - len(fenced), starts=earlier_starts)
        severity = Severity.WARNING if len(fenced) - orderly >= FLAPS else Severity.INFO
        group = Affected(
            reason=f"{counts}; {usual}",
            things=(f"broker {broker}",),
            since=_begin_of_run(case, [loss.at for loss in every]),
        )
        found[severity].append((broker, len(fenced), group))
    for severity, some in found.items():
        if some:
            was = "was" if len(some) == 1 else "were"
            times = counted(sum(count for _, count, _ in some), "time")
            yield CheckResult(
                sentence=f"{broker_words([id_ for id_, _, _ in some])} {was} fenced {times} {_window(case)}",
                groups=tuple(group for _, _, group in some),
                lasts=False,
                severity=severity,
            )


def _begin_of_run(case: CheckInput, positions: Sequence[LogPosition]) -> LogPosition:
    """The start of the run in which something happens at least once in each window, up to the last time."""
    begin = positions[-1]
    for at in reversed(positions):
        if at.timestamp is None or begin.timestamp is None or begin.timestamp - at.timestamp > case.window_ms:
            break
        begin = at
    return begin


def _dropouts(case: CheckInput) -> Iterator[CheckResult]:
    """Replicas that leave the ISR repeatedly although their broker runs; few times, or the usual number, are a note."""
    flaps: Counter[tuple[int, str]] = Counter()
    first: dict[tuple[int, str], LogPosition] = {}
    for one in case.timeline.activity.dropouts():
        if not _is_explained(one, case.timeline.registrations.brokers.get(one.broker, ())):
            flaps[one.broker, one.partition] += 1
            first.setdefault((one.broker, one.partition), one.at)
    by_broker: dict[int, list[str]] = {}
    for (broker, partition), count in flaps.items():
        if count >= FLAPS:
            by_broker.setdefault(broker, []).append(partition)
    groups, unusual = [], False
    for broker, partitions in sorted(by_broker.items()):
        count = sum(flaps[broker, partition] for partition in partitions)
        earlier = case.timeline.activity.earlier.dropouts[broker]
        is_often = max(flaps[broker, partition] for partition in partitions) >= _FEW
        unusual = unusual or (is_often and _is_unusual(_usual(case, earlier), count))
        words = f"out of sync {counted(count, 'time')} on broker {broker}, which ran"
        groups.append(
            Affected(
                reason=f"{words}; {_usual_words(case, times=earlier)}",
                things=tuple(partitions),
                since=min(first[broker, partition] for partition in partitions),
            )
        )
    if groups:
        count = sum(len(some) for some in by_broker.values())
        replicas = f"{counted(count, 'replica')} of {broker_words([*by_broker])}"
        yield CheckResult(
            sentence=f"{replicas} fell out of sync again and again {_window(case)}",
            groups=tuple(groups),
            lasts=False,
            severity=Severity.WARNING if unusual else Severity.INFO,
        )


def _is_explained(one: Dropout, states: Sequence[Registered[BrokerRegistration]]) -> bool:
    """Whether the broker did not run then, or its registration changed at the same time."""
    place = place_at(states, one.at.offset)
    now = states[place].state if place >= 0 else None
    if now is None or now.fenced or now.in_controlled_shutdown:
        return True
    near = states[place : place + 2]
    return any(state.since is not None and state.since.timestamp == one.at.timestamp for state in near)


def _elections(case: CheckInput) -> Iterator[CheckResult]:
    """Elections in the quorum, more than one for each of its voters; a note where restarts explain them."""
    every = case.timeline.activity.quorum_elections
    recent = [one for one in every if _is_recent(case, one.at)]
    earlier = len(every) - len(recent)
    if len(recent) < max(FLAPS, len(case.quorum.voters) + 1) or not _is_unusual(_usual(case, earlier), len(recent)):
        return
    controllers = case.timeline.registrations.controllers.values()
    starts, _ = _counts(case, [one.since for states in controllers for one in incarnations(states)])
    is_alone = len(case.quorum.voters) == 1  # it is elected at each start, and never else
    sentence = f"the quorum elected {counted(len(recent), 'leader')} {_window(case)}"
    yield CheckResult(
        sentence=f"{sentence}, with {counted(starts, 'start')} of controllers; {_usual_words(case, elections=earlier)}",
        groups=tuple(
            Affected(
                reason="another leader, which no control record names"
                if one.leader < 0
                else f"controller {one.leader} was elected",
                things=(f"epoch {one.epoch}",),
                since=one.at,
            )
            for one in recent
        ),
        lasts=False,
        severity=Severity.INFO if is_alone or len(recent) - starts < FLAPS else Severity.WARNING,
    )


def _unusual(case: CheckInput) -> Iterator[CheckResult]:
    """Totals of the window that are above the usual ones."""
    history, activity = case.timeline.registrations, case.timeline.activity
    recently, before = activity.recent, activity.earlier
    losses = [loss.at for broker in history.brokers for loss in history.losses(broker)]
    starts = [start.at for broker in history.brokers for start in history.starts(broker)]
    counts = (
        ("fencings", "fenced", *_counts(case, losses)),
        ("starts of brokers", "restart", *_counts(case, starts)),
        ("lost leaderships", "leader", recently.lost_leaderships.total(), before.lost_leaderships.total()),
        ("replicas out of sync", "shrink", recently.dropouts.total(), before.dropouts.total()),
    )
    groups, kinds = [], []
    for name, kind, recent, earlier in counts:
        usual = _usual(case, earlier)
        if usual is not None and recent >= _FEW and _is_unusual(usual, recent):
            groups.append(Affected(reason=f"{recent:,}, usually {_number(usual)}", things=(name,)))
            kinds.append(kind)
    if groups:
        yield CheckResult(
            sentence=f"more happened than usual {_window(case)}",
            groups=tuple(groups),
            lasts=False,
            command=case.command(f"events {{source}} --kind {kinds[0]}{{range}}"),
        )


STABILITY_CHECKS = (
    Check(
        name="flapping_brokers",
        severity=Severity.WARNING,
        text="brokers that were fenced again and again within the window",
        command="events {source} --kind 'broker_*fenced'{range}",
        helps=safe(
            "A broker with as many starts as fencings ends again and again: its own log says why (memory, disk, "
            "configuration). One that was fenced without a start ran on and sent no heartbeats: look for long pauses "
            "of garbage collection, slow disks and the connection to the controllers."
        ),
        find=_fencings,
    ),
    Check(
        name="flapping_replicas",
        severity=Severity.WARNING,
        text="replicas that left the ISR again and again within the window although their broker ran",
        command="events {source} --kind shrink{range}",
        helps=safe(
            "The followers of one broker alone: look at its disks, network and throttles. Those of all brokers, of few "
            "partitions: look at the load of these and of their leaders, and compare replica.lag.time.max.ms."
        ),
        find=_dropouts,
    ),
    Check(
        name="quorum_elections",
        severity=Severity.WARNING,
        text="more elections of the quorum's leader within the window than restarts explain",
        command="events {source} --kind controller{range}",
        helps=safe(
            "Look at the controllers' logs for pauses, slow disks and the connections between them: a follower that "
            "waits longer than controller.quorum.fetch.timeout.ms for its leader begins an election."
        ),
        find=_elections,
    ),
    Check(
        name="unusual_activity",
        severity=Severity.INFO,
        text="fencings, starts, elections and ISR changes within the window, where they are more than usual",
        command="events {source} --kind broker{range}",
        helps=safe("Compare with what was done to the cluster at that time: a restart of all brokers is such a time."),
        find=_unusual,
    ),
)
"""The checks of events that are too frequent."""
