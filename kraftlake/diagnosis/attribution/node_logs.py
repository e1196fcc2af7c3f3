"""Logs of nodes in the time of records: their requests, the moments they cover, and their clocks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta, timezone, tzinfo
from operator import attrgetter
from typing import Final

import attrs

from kraftlake.diagnosis.attribution.authorizer_lines import AuthorizerLine
from kraftlake.diagnosis.attribution.changed_records import ChangedRecord
from kraftlake.diagnosis.attribution.clocks import Clock, estimate
from kraftlake.diagnosis.attribution.line_times import in_zone
from kraftlake.diagnosis.attribution.log_files import NodeLines
from kraftlake.diagnosis.attribution.requests import LONGEST, Request, requests_of
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import counted

_ZONE_STEP: Final = 15 * 60 * 1000
"""The step in milliseconds in which time zones differ."""
_NEAR_ZONE: Final = 60 * 1000
_FARTHEST_ZONE: Final = 14 * 60 * 60 * 1000
_SECOND: Final = 1000
_FIRST: Final = attrgetter("first")


@attrs.frozen(kw_only=True, eq=False)
class NodeLog:
    """One node's requests in the order of their first lines, the times (epoch ms) of its ends, and its clock.

    `allowed`: the log has lines of allowed operations, which Kafka writes at the level DEBUG alone. `leads`: the node
    was the active controller, whose clock is that of the records. `left_out` says which lines were not used.
    """

    name: str
    requests: Sequence[Request]
    first: int
    last: int
    clock: Clock
    allowed: bool = True
    leads: bool = False
    left_out: str = ""

    @property
    def is_clock_known(self) -> bool:
        """Whether the clock is known, and not taken for that of the records for want of anything better."""
        return self.leads or bool(self.clock.pairs)

    def covers(self, time: int) -> bool:
        """Whether the log was written when records of a time were."""
        return self.first + self.clock.least <= time <= self.last + self.clock.most

    def near(self, time: int) -> Sequence[Request]:
        """The requests that records of a time can be of, by the clock alone."""
        earliest, latest = time - self.clock.most, time - self.clock.least
        begin = bisect_left(self.requests, earliest - LONGEST, key=_FIRST)
        some = self.requests[begin : bisect_right(self.requests, latest, key=_FIRST)]
        return [request for request in some if request.last >= earliest]


def node_log(lines: NodeLines, records: Mapping[int, ChangedRecord], zone: tzinfo | None) -> NodeLog:
    """The log of a node; `zone` is that of lines that state none.

    Raises UsageError where there are such lines and no `zone`, or where the zone is not that of the lines.
    """
    stated = all(line.time.has_zone for line in (*lines.ends, *(line for line, _ in lines.lines)) if line.time)
    log = _placed(lines, records, zone or UTC)
    away = _zones_away(log.clock)
    if zone is None and not stated:
        fits = (
            f" ({counted(log.clock.pairs, 'request')} of them with a change that no other one can have made "
            f"{'fits' if log.clock.pairs == 1 else 'fit'} with {_offset_words(away or 0)})"
            if log.clock.pairs and away is not None
            else ""
        )
        raise UsageError(
            f"The lines of {lines.name} state no time zone: give that of its node with --log-tz, such as UTC, +02:00 "
            f"or Europe/Berlin{fits}."
        )
    if away and not stated:
        raise UsageError(
            f"With --log-tz {zone} the lines of {lines.name} are {_hours(away)} {'before' if away > 0 else 'after'} "
            f"the records that {counted(log.clock.pairs, 'request')} of them made: give the zone of its node."
        )
    return log


def _placed(lines: NodeLines, records: Mapping[int, ChangedRecord], zone: tzinfo) -> NodeLog:
    timed = [(_moment(line, zone), line, file) for line, file in lines.lines]
    known = [(time, line, file) for time, line, file in timed if time is not None]
    ends = [time for line in lines.ends if (time := _moment(line, zone)) is not None]
    times = [*ends, *(time for time, _, _ in known)]
    resolution = 0 if any(line.time is not None and line.time.has_fraction for line in lines.ends) else _SECOND
    requests = requests_of(known)
    unplaced, unreadable = len(timed) - len(known), lines.unreadable.total()
    left_out = [
        f"{counted(unreadable, 'line')} torn or not to be read in one way" if unreadable else "",
        f"{counted(lines.dateless, 'line')} without a date" if lines.dateless else "",
        f"{counted(unplaced, 'line')} of an hour that clocks in {zone} show twice or never" if unplaced else "",
    ]
    return NodeLog(
        name=lines.name,
        requests=requests,
        first=min(times, default=0),
        last=max(times, default=0),
        clock=estimate(requests, records, resolution=resolution),
        allowed=lines.allowed,
        leads=lines.leads,
        left_out=", ".join(filter(None, left_out)),
    )


def _moment(line: AuthorizerLine, zone: tzinfo) -> int | None:
    if line.time is None:
        return None
    return line.time.milliseconds if line.time.has_zone else in_zone(line.time.milliseconds, zone)


def _zones_away(clock: Clock) -> int | None:
    """The difference of a clock where that is one of time zones, 0 for none; None where it is neither."""
    nearest = round(clock.difference / _ZONE_STEP) * _ZONE_STEP
    is_near = abs(clock.difference - nearest) <= _NEAR_ZONE and abs(nearest) <= _FARTHEST_ZONE
    return nearest if is_near and clock.pairs else 0 if not clock.pairs else None


def _offset_words(away: int) -> str:
    """The zone in which a clock is that reads as UTC is `away` milliseconds behind."""
    return "--log-tz UTC" if not away else f"--log-tz {str(timezone(-timedelta(milliseconds=away)))[3:]}"


def _hours(milliseconds: int) -> str:
    hours, minutes = divmod(abs(milliseconds) // 60_000, 60)
    return " and ".join(
        filter(None, (counted(hours, "hour") if hours else "", counted(minutes, "minute") if minutes else ""))
    )
