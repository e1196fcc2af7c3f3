"""The check of nodes whose id two processes use in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from kraftlake.diagnosis.doctor.case import RECENT_HOURS, Case
from kraftlake.diagnosis.doctor.check import Check
from kraftlake.diagnosis.doctor.finding import Found, Severity
from kraftlake.diagnosis.doctor.group import Group, LogPosition
from kraftlake.diagnosis.doctor.help import safe
from kraftlake.diagnosis.doctor.registration_history import Registered, incarnations
from kraftlake.image import BrokerRegistration
from kraftlake.runtime import counted, in_words


@attrs.frozen(kw_only=True)
class _Turns:
    """How often what a node registered with came back after something else: the first and last time, and both."""

    count: int
    first: LogPosition
    last: LogPosition
    one: Any
    other: Any
    of_process: bool
    """Whether the same process came back, not only one at the same place."""


def _turns(states: Sequence[Registered[Any]]) -> _Turns | None:
    """The turns that two processes take: restarts are new each time, and a move that is taken back is one return.

    An incarnation that registers again after another did has run on meanwhile: one such return is proof.
    """
    starts = [*incarnations(states)]
    for of_process, key, least in ((True, _incarnation, 1), (False, _place, 2)):
        seen: set[Any] = set()
        returns: list[tuple[LogPosition, Any, Any]] = []
        last: Registered[Any] | None = None
        for start in starts:
            if last is not None and key(start.state) != key(last.state) and key(start.state) in seen:
                assert start.since is not None, "the first state alone is without a place in the log"
                returns.append((start.since, start.state, last.state))
            seen.add(key(start.state))
            last = start
        if len(returns) >= least:
            at, one, other = returns[-1]
            return _Turns(count=len(returns), first=returns[0][0], last=at, one=one, other=other, of_process=of_process)
    return None


def _incarnation(state: Any) -> Any:
    return state.incarnation_id


def _place(state: Any) -> Any:
    """What a process has of its machine: the addresses, the rack and the log directories."""
    return _addresses(state), getattr(state, "rack", None), getattr(state, "directories", ())


def _addresses(state: Any) -> tuple[str, ...]:
    return tuple(sorted({f"{one.host}:{one.port}" for one in state.listeners.values()}))


def _described(state: Any, other: Any) -> str:
    """What tells a process from the other one."""
    told = [in_words(_addresses(state)) or "no address"]
    directories = getattr(state, "directories", ())
    if directories and set(directories) != set(getattr(other, "directories", ())):
        told.append(f"directory {in_words(directories)}")
    if getattr(state, "rack", None) != getattr(other, "rack", None):
        told.append(f"rack {state.rack}")
    return f"{', '.join(told)} (incarnation {state.incarnation_id})"


def _in_turn(case: Case) -> Iterator[Found]:
    registrations = case.timeline.registrations
    recent = case.end_ms - RECENT_HOURS * 3_600_000
    groups, names, is_split = [], [], False
    nodes: tuple[tuple[str, Mapping[int, Sequence[Registered[Any]]]], ...] = (
        ("broker", registrations.brokers),
        ("controller", registrations.controllers),
    )
    for kind, history in nodes:
        for id_, states in sorted(history.items()):
            turns = _turns(states)
            if turns is None or (turns.last.timestamp or -1) < recent:
                continue
            name = f"{kind} {id_}"
            what = "one process came back" if turns.of_process else "one of two places came back"
            reason = (
                f"{what} {counted(turns.count, 'time')} after the other: {_described(turns.one, turns.other)} and "
                f"{_described(turns.other, turns.one)}"
            )
            groups.append(Group(reason=reason, things=(name,), since=turns.first))
            names.append(name)
            is_split = is_split or _have_other_directories(turns)
    if groups:
        brokers = [name.split()[1] for name in names if name.startswith("broker")]
        yield Found(
            sentence=f"two processes use the id of {in_words(names)} in turn",
            groups=tuple(groups),
            severity=Severity.CRITICAL if is_split else Severity.WARNING,
            command=case.command(f"blame {{source}} broker/{brokers[0]}/incarnationId --all{{at}}")
            if brokers
            else case.command("events {source} --kind controller{range}"),
        )


def _have_other_directories(turns: _Turns) -> bool:
    one, other = turns.one, turns.other
    return isinstance(one, BrokerRegistration) and bool(one.directories) and set(one.directories).isdisjoint(
        other.directories
    )  # fmt: skip


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
