"""The stability of a cluster: how often something happened, hour by hour, against its own past. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.diagnosis.stability.happenings import NO_BROKER, NUMBERS, Happenings
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.queries.changes import begin_of_range
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import check_unbroken

HOUR_MS: Final = 3_600_000
MOST_SPANS: Final = 96
"""The number of spans that a picture has at most."""
_SPANS_S: Final = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, *(days * 86_400 for days in (1, 7, 30, 365)))
"""The lengths of a picture's spans."""
LEAST_PAST: Final = 6
"""The number of hours from which on a past has a level."""
_SPREADS: Final = 3 * 1.4826
"""The number of median absolute deviations above the median: three standard deviations, if counts were normal."""
_MULTIPLE: Final = 3
_FLOORS: Final = {"unclean_elections": 0, "fencings": 2, "starts": 2, "controller_changes": 2}
_FLOOR: Final = 4
"""A level is at least this, or the floor of its kind: as few as that are never out of the level."""


@attrs.frozen(kw_only=True)
class StabilityCount:
    """The events of a kind in an hour of a whole cluster, or of a broker in all hours of a range.

    `hour` is its start (epoch ms); of a broker both are None for events of the quorum. `orderly` of the `count` were
    explained by a controlled shutdown or a return to the preferred leader. `median` and `level` are of the others in an
    hour of the past, None where that is too short; `unusual` is the number of hours above the level, None likewise.
    """

    kind: str
    count: int
    orderly: int
    median: float | None
    level: float | None
    unusual: int | None
    hour: int | None = None
    broker: int | None = None

    def to_json(self, by: str) -> dict[str, Any]:
        """A line of `kraftlake stability --json`."""
        form: dict[str, Any] = {"hour": self.hour} if by == "hour" else {"broker": self.broker}
        form |= {"kind": self.kind, "count": self.count, "orderly": self.orderly}
        form |= {"median": self.median, "level": self.level}
        if by == "hour":
            return form | {"unusual": None if self.unusual is None else self.unusual > 0}
        return form | {"unusualHours": self.unusual}


@attrs.frozen(kw_only=True)
class Stability:
    """The counts of a range of offsets, by `by`: the hour or the broker, in its order and that of KINDS.

    `past_hours` is the number of hours that each hour is compared with. `skipped` are the records that a lenient
    reading left out.
    """

    from_offset: int
    to_offset: int
    by: str
    past_hours: int
    counts: tuple[StabilityCount, ...]
    skipped: tuple[SkippedRecord, ...] = ()

    @property
    def has_level(self) -> bool:
        """Whether the past is long enough to have a level."""
        return self.past_hours >= LEAST_PAST


def stability(
    source: LogSource,
    from_offset: int | None,
    to_offset: int | None,
    *,
    by: str = "hour",
    lenient: bool = False,
) -> Stability:
    """Count what happened in a range, and compare it with the hours before, as far as the log knows.

    None is the log's own start or end. Raises the errors of `LogReplay.read`.
    """
    reader, replay = source.reader, LogReplay(lenient=lenient)
    last = reader.end_offset - 1 if to_offset is None else to_offset
    begin_of_range(reader, from_offset, to_offset, lenient=lenient)  # raises where the log has no such range
    after = begin_of_range(reader, None, last, lenient=lenient)
    if not lenient:
        check_unbroken(reader, after + 1, last)
    first = max(after + 1, from_offset or 0)
    happenings = Happenings(replay.begin_at(reader, after).image)
    begin = -1
    for chunk in replay.read(reader, last):
        happenings.take(chunk)
        times = chunk.boundaries.times[(chunk.boundaries.offsets >= first) & (chunk.boundaries.times >= 0)]
        begin = int(times[0]) if begin < 0 and len(times) else begin
    hours = _Hours(happenings, begin, HOUR_MS)
    counts = sorted(_counted(happenings.happened(), first, hours, by), key=lambda one: one.hour or 0)
    return Stability(
        from_offset=first,
        to_offset=last,
        by=by,
        past_hours=hours.past,
        counts=tuple(counts),
        skipped=tuple(replay.skipped),
    )


def by_span(happenings: Happenings) -> dict[str, Any] | None:
    """The counts of all that was gathered, in spans of time that are compared with each other, for a picture.

    `first` is the start of the first span and `size` the length of all (ms), `count` their number; `kinds` have a level
    (None for a few spans alone), and by span its number, the count, and how many were orderly. None without times.
    """
    first, last = happenings.first_time, happenings.last_time
    size = next((1000 * one for one in _SPANS_S if last // (1000 * one) - first // (1000 * one) < MOST_SPANS), None)
    if first < 0 or size is None:
        return None
    spans, found = _Hours(happenings, first, size), happenings.happened()
    kinds = []
    for kind, number in NUMBERS.items():
        known, counts = _counts(found[found.kinds == number], 0, kind, spans)
        if len(counts[0]):
            rows = np.stack(counts, axis=1).tolist()
            level = None if known is None else known[1]
            kinds.append({"kind": kind.replace("_", " "), "level": level, "spans": rows})
    return {"first": spans.first * size, "size": size, "count": spans.count, "kinds": kinds}


class _Hours:
    """The hours of a log by number, the hours of a range in it, and the past that each of these is compared with.

    The past are the hours before the range, if there are LEAST_PAST; else all hours of the log, which the median and
    the deviation from it bear with a few unusual ones among them.
    """

    def __init__(self, happenings: Happenings, begin: int, size: int) -> None:
        self.size = size
        self.first = max(happenings.first_time, 0) // size
        self.count = max(happenings.last_time, 0) // size - self.first + 1
        before = max(begin, 0) // size - self.first
        self.past = before if before >= LEAST_PAST else self.count

    def of(self, times: Any) -> Any:
        """The number of each time's hour (int64[n])."""
        return times // self.size - self.first

    def level(self, kind: str, hours: Any) -> tuple[float, float] | None:
        """The median of the events of a kind in the past, and their level; None for a short past."""
        if self.past < LEAST_PAST:
            return None
        _, counts = np.unique(hours[hours < self.past], return_counts=True)
        quiet = self.past - len(counts)
        weights = np.array([quiet, *[1] * len(counts)])
        median = _median(np.array([0, *counts]), weights)
        spread = _median(np.abs(np.array([0, *counts]) - median), weights)
        return median, max(median + _SPREADS * spread, _MULTIPLE * median, _FLOORS.get(kind, _FLOOR))


def _median(values: Any, weights: Any) -> float:
    """The median of values, each of which there are so many."""
    order = np.argsort(values)
    upto = np.cumsum(weights[order])
    middle = [(int(upto[-1]) - 1) // 2, int(upto[-1]) // 2]
    return float(values[order][np.searchsorted(upto, middle, side="right")].mean())


def _counted(found: Any, first: int, hours: _Hours, by: str) -> Iterator[StabilityCount]:
    """The counts of the events from the offset `first` on: one for each hour of a kind, or for each broker."""
    for broker in np.unique(found.brokers[found.offsets >= first]).tolist() if by == "broker" else [None]:
        for kind, number in NUMBERS.items():
            chosen = (found.kinds == number) & (broker is None or found.brokers == broker)
            known, (numbers, counts, orderly) = _counts(found[chosen], first, kind, hours)
            median, level = known or (None, None)
            singles = [slice(place, place + 1) for place in range(len(numbers))]
            for rows in singles if broker is None else [slice(None)] * bool(singles):
                unusual = None if level is None else int(np.count_nonzero((counts - orderly)[rows] > level))
                yield StabilityCount(
                    kind=kind,
                    count=int(counts[rows].sum()),
                    orderly=int(orderly[rows].sum()),
                    median=median,
                    level=level,
                    unusual=unusual,
                    hour=(hours.first + int(numbers[rows][0])) * hours.size if broker is None else None,
                    broker=None if broker == NO_BROKER else broker,
                )


def _counts(
    found: Any, first: int, kind: str, hours: _Hours
) -> tuple[tuple[float, float] | None, tuple[Any, Any, Any]]:
    """The median and level of events; of those from an offset on the hours, the counts, and the orderly ones."""
    some = found[found.offsets >= first]
    numbers, which, counts = np.unique(hours.of(some.times), return_inverse=True, return_counts=True)
    orderly = np.bincount(which.reshape(-1), weights=some.orderly, minlength=len(numbers)).astype(np.int64)
    return hours.level(kind, hours.of(found.times[~found.orderly])), (numbers, counts, orderly)
