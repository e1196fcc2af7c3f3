"""The check of nodes whose id two processes use in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs

from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.finding import CheckResult, Severity
from kraftlake.diagnosis.doctor.group import Affected, LogPosition
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.doctor.registration_history import Registered, incarnations
from kraftlake.diagnosis.leadership import node_words
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.words import counted, in_words


@attrs.frozen(kw_only=True)
class _Turns:
    """The returns of a process, or of one at the same place, after another: number, first and last time, and both."""

    count: int
    first: LogPosition
    last: LogPosition
    one: Any
    other: Any
    of_process: bool

    @property
    def is_split(self) -> bool:
        """Whether both have log directories of their own, and so different data."""
        one, other = _disks(self.one), _disks(self.other)
        return bool(one and other) and one.isdisjoint(other)

    @property
    def severity(self) -> Severity:
        """The severity; a single return to the earlier data may be a move that was taken back."""
        if not self.of_process and self.count == 1:
            return Severity.INFO
        return Severity.CRITICAL if self.is_split else Severity.WARNING


def _turns(states: Sequence[Registered[Any]]) -> _Turns | None:
    """The alternation of two processes with one id; restarts are new each time.

    An incarnation that registers again after another one was still running: one such return is proof.
    """
    starts = [*incarnations(states)]
    of_processes = _returns(starts, [getattr(start.state, "incarnation_id", None) for start in starts])
    turns = of_processes or _returns(starts, [*_places(starts)])
    if not turns:
        return None
    at, one, other = turns[-1]
    found = _Turns(count=len(turns), first=turns[0][0], last=at, one=one, other=other, of_process=bool(of_processes))
    return found if found.of_process or found.count > 1 or found.is_split else None


def _returns(starts: Sequence[Registered[Any]], keys: Sequence[Any]) -> list[tuple[LogPosition, Any, Any]]:
    """The returns of a key after another one: the position in the log, and both states."""
    return [
        (start.since, start.state, before.state)
        for number, (before, start) in enumerate(pairwise(starts), start=1)
        if keys[number] != keys[number - 1] and keys[number] in keys[:number] and start.since is not None
    ]


def _places(starts: Sequence[Registered[Any]]) -> Iterator[Any]:
    """The machine of each process: the addresses, the rack and the disks, of which one may fail or be new."""
    machines: list[set[Any]] = []
    for start in starts:
        disks = _disks(start.state)
        number = next((number for number, known in enumerate(machines) if known & disks), len(machines))
        if disks and number == len(machines):
            machines.append(set())
        if disks:
            machines[number] |= disks
        yield _addresses(start.state), getattr(start.state, "rack", None), number if disks else -1


def _disks(state: Any) -> set[Uuid]:
    """The log directories of a broker; a controller's registration has none."""
    return set(getattr(state, "directories", ()))


def _addresses(state: Any) -> tuple[str, ...]:
    return tuple(sorted({f"{one.host}:{one.port}" for one in state.listeners.values()}))


def _described(state: Any, other: Any) -> str:
    """The differences of a process from the other one."""
    differences = [in_words(_addresses(state)) or "no address"]
    if _disks(state) not in (set(), _disks(other)):
        differences.append(f"directory {in_words(state.directories)}")
    if getattr(state, "rack", None) != getattr(other, "rack", None):
        differences.append(f"rack {state.rack}")
    return f"{', '.join(differences)} (incarnation {state.incarnation_id})"


def _in_turn(case: CheckInput) -> Iterator[CheckResult]:
    registrations, brokers = case.timeline.registrations, case.image.cluster.brokers
    nodes: list[tuple[str, Sequence[Registered[Any]]]] = [
        *((f"broker {id_}", states) for id_, states in sorted(registrations.brokers.items())),
        *((f"controller {id_}", states) for id_, states in sorted(registrations.controllers.items())),
    ]
    found: dict[Severity, list[tuple[str, _Turns]]] = {}
    for name, states in nodes:
        turns = _turns(states)
        if turns is not None and (turns.last.timestamp or -1) >= case.recent_begin:
            found.setdefault(turns.severity, []).append((name, turns))
    for severity, some in sorted(found.items()):
        names = [name for name, _ in some]
        kinds = [name.split()[0] for name in names]
        registered = [id_ for kind, id_ in map(str.split, names) if kind == "broker" and int(id_) in brokers]
        subject = node_words(names)
        yield CheckResult(
            sentence=f"{subject} went to other log directories and came back"
            if severity is Severity.INFO
            else f"two processes take turns as {subject}",
            groups=tuple(Affected(reason=_reason(turns), things=(name,), since=turns.first) for name, turns in some),
            lasts=False,
            severity=severity,
            command=case.command(
                f"blame {{source}} broker/{registered[0]}/incarnationId --all{{at}}"
                if registered
                else f"events {{source}} --kind {kinds[0]}{{range}}"
            ),
        )


def _reason(turns: _Turns) -> str:
    what = "a process came back" if turns.of_process else "one of two places came back"
    both = f"{_described(turns.one, turns.other)} and {_described(turns.other, turns.one)}"
    return f"{what} {counted(turns.count, 'time')} after the other: {both}"


IDENTITY_CHECKS = (
    Check(
        name="shared_node_id",
        severity=Severity.CRITICAL,
        text="nodes whose id two processes use in turn",
        command="blame {source} broker/ID/incarnationId{at}",
        helps=safe(
            "Find out which of both holds the data that the cluster means: it has the log directories that the "
            "partitions are assigned to. Stop the other one, and see that nothing starts it again; keep its disks, "
            "as producers may have been answered by it."
        ),
        find=_in_turn,
    ),
)
"""The checks of nodes' identities."""
