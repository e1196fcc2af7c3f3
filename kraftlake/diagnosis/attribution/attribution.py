"""The attribution of records to the clients whose requests made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from kraftlake.diagnosis.attribution.audit_files import read_audits
from kraftlake.diagnosis.attribution.causes import CLUSTER, Cause, cause_of_event
from kraftlake.diagnosis.attribution.changed_records import ChangedRecord, ChangedRecords
from kraftlake.diagnosis.attribution.findings import Candidate, Finding, Who
from kraftlake.diagnosis.attribution.log_files import NodeLines, read_logs
from kraftlake.diagnosis.attribution.node_logs import NodeLog, node_log
from kraftlake.diagnosis.attribution.requests import ANY, Request
from kraftlake.diagnosis.attribution.witnesses import Witnesses
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import EPOCH, iso
from kraftlake.runtime.words import counted, duration, in_words

_A_MINUTE: Final = 60_000
_CLOCK_UNKNOWN: Final = (
    "the line names no resource, and its clock may be another one: it is of no active controller, and fewer than three "
    "pairs of a request and a record belong to nothing else"
)


class Attribution:
    """Finds the client whose request made a record."""

    def __init__(self, source: LogSource, witnesses: Witnesses) -> None:
        """Read the witnesses, and the records of a source that clients' requests made.

        Raises UsageError for witnesses that can't be of this log: without a zone, or of other times.
        """
        self._records = ChangedRecords(source)
        self._of_nodes: dict[str, Who] = {}
        self._logs = self._placed(read_logs(witnesses.authorizer_logs), witnesses, source.name)
        audits = read_audits(witnesses.audits, witnesses.audit_map) if witnesses.audits else []
        self._audits = self._placed(audits, witnesses, source.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields that `Who.to_json` has."""
        return tuple(name for name, logs in (("who", self._logs), ("audit", self._audits)) if logs)

    def of(self, offset: int | None) -> Who:
        """The client that made the record at an offset, by each kind of witness; None for what no record made."""
        return self._who(None if offset is None else self._records.at(offset))

    def of_event(self, event: Mapping[str, Any]) -> Who:
        """The client that made an event, a row of the table `events/` or its JSON form."""
        time = event["timestamp"]
        if isinstance(time, datetime):
            time = (time - EPOCH) // timedelta(milliseconds=1)
        cause = cause_of_event(event["kind"], event["subject"], event["topic"])
        if cause.ways:
            return self._who(ChangedRecord(-1 if time is None else time, cause))
        if cause.nodes not in self._of_nodes:  # as most events: at any time the same
            self._of_nodes[cause.nodes] = self._who(ChangedRecord(-1, cause))
        return self._of_nodes[cause.nodes]

    def _who(self, record: ChangedRecord | None) -> Who:
        found = [_finding(logs, record) if logs else None for logs in (self._logs, self._audits)]
        return Who(authorizer=found[0], audit=found[1])

    def notes(self) -> Iterable[str]:
        """A sentence on each file or node: its clock, and what of it was not used."""
        logs = (*self._logs, *self._audits)
        for log in logs:
            left_out = f"left out: {log.left_out}" if log.left_out else ""
            if not log.allowed:
                yield (
                    f"{log.name} has denied operations alone: Kafka logs allowed ones where kafka.authorizer.logger "
                    "has the level DEBUG"
                )
            elif log.requests or left_out:
                requests = f"{counted(len(log.requests), 'request')} that may change metadata"
                yield f"{log.name}: {'; '.join(filter(None, (requests, _times(log), left_out)))}"
        of_clients = self._records.of_clients
        if any(log.allowed and log.requests for log in logs) and not any(
            _finding(logs, record).candidates for record in of_clients.values()
        ):
            yield "none of the lines fits a change of this log: they may be of another cluster, or of other nodes"

    def _placed(self, lines: Sequence[NodeLines], witnesses: Witnesses, name: str) -> list[NodeLog]:
        of_clients = self._records.of_clients
        logs = [node_log(one, of_clients, witnesses.log_zone) for one in lines]
        _check_times(logs, [record.time for record in of_clients.values() if record.time >= 0], name)
        return logs


def _finding(logs: Sequence[NodeLog], record: ChangedRecord | None) -> Finding:
    """The clients of some logs that can have made a record."""
    if record is None:
        return Finding(reason="no record of the log made it: it lies in a snapshot")
    cause = record.cause
    if not cause.ways:
        return Finding(reason=f"no client asks for this: {cause.nodes}", of_nodes=True)
    if record.time < 0:
        return Finding(reason="the record has no time")
    found: dict[tuple[str, str | None, str], Candidate] = {}
    is_sure = False
    for log in logs:
        for request in log.near(record.time):
            if _fits(request, cause):
                found.setdefault(request.who, _candidate(request))
                is_sure |= log.is_clock_known or cause.name in request.names
    candidates = tuple(found.values())
    if not candidates:
        return Finding(reason=_why_none(logs, record.time, cause), of_nodes=bool(cause.nodes))
    if len(candidates) > 1 or cause.nodes:
        return Finding(candidates=candidates, reason=_why_several(candidates, cause))
    if not is_sure:
        return Finding(candidates=candidates, reason=_CLOCK_UNKNOWN)
    return Finding(candidates=candidates)


def _candidate(request: Request) -> Candidate:
    return Candidate(
        principal=request.principal, host=request.host, request=request.request, timestamp=request.last,
        file=request.file,
    )  # fmt: skip


def _fits(request: Request, cause: Cause) -> bool:
    """Whether a request can be the cause of a record."""
    for name, operation, type_ in cause.ways:
        if request.request != name:
            continue
        for access in request.accesses:
            if access.resource_type == ANY and (not access.resource or cause.name in (None, access.resource)):
                return True
            if operation not in ("*", access.operation) or type_ != access.resource_type:
                continue
            if type_ != CLUSTER:
                if access.resource == cause.name:
                    return True
            # such a line has no topic's name: it stands where a client that creates the topic may describe its configs
            elif cause.name is None or cause.name in request.names or not request.names_all:
                return True
    return False


def _why_none(logs: Sequence[NodeLog], time: int, cause: Cause) -> str:
    own = f" ({cause.nodes})" if cause.nodes else ""
    if not any(log.covers(time) for log in logs):
        first, last = min(log.first for log in logs), max(log.last for log in logs)
        return f"no line is of its time: the lines are of {_iso(first)} to {_iso(last)}{own}"
    asked = in_words(cause.requests, "or")
    return f"no line at its time allows {asked}{f' on {cause.name}' if cause.name else ''}{own}"


def _why_several(candidates: Sequence[Candidate], cause: Cause) -> str:
    if cause.nodes:
        return cause.nodes
    asked = in_words(list(dict.fromkeys(candidate.request for candidate in candidates)), "or")
    on_cluster = all(way.resource_type == CLUSTER for way in cause.ways)
    why = "such lines name the cluster alone" if on_cluster else "any of them can have made it"
    return f"{counted(len(candidates), 'client')} asked for {asked} at its time, and {why}"


def _times(log: NodeLog) -> str:
    """What is known of a log's clock."""
    clock = log.clock
    if not clock.pairs:
        return f"its clock is {'that' if log.leads else 'taken for that'} of the records"
    order = "after" if clock.difference >= 0 else "before"
    length = abs(clock.difference)
    words = f"{length / 1000:.3f} s" if length < _A_MINUTE else duration(length)
    return f"records come {words} {order} their lines, by {counted(clock.pairs, 'pair')}"


def _check_times(logs: Sequence[NodeLog], times: Sequence[int], name: str) -> None:
    """Refuse logs that were written when no record of clients' requests was."""
    if not logs or not times:
        return
    first, last = min(times), max(times)
    if all(log.last + log.clock.most < first or log.first + log.clock.least > last for log in logs):
        begin, end = min(log.first for log in logs), max(log.last for log in logs)
        raise UsageError(
            f"No line is of the time of {name}: the lines are of {_iso(begin)} to {_iso(end)}, and what clients "
            f"changed there of {_iso(first)} to {_iso(last)}: name the logs of that time."
        )


def _iso(time: int) -> str:
    return iso(EPOCH + timedelta(milliseconds=time))
