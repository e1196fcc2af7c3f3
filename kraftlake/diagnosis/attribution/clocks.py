"""The differences between the clocks of lines and records, by records that one request alone can have made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from kraftlake.diagnosis.attribution.changed_records import ChangedRecord
from kraftlake.diagnosis.attribution.requests import Request

_LEAST_PAIRS: Final = 3
_TOGETHER: Final = 2_000
"""The range in milliseconds within which pairs agree."""
_EARLY: Final = 100
_LATE: Final = 500
"""A record is at most so many milliseconds older or newer than a line of its request, apart from the clocks."""


@attrs.frozen(kw_only=True)
class Clock:
    """The times between a node's lines and the records of their requests, in milliseconds.

    `difference` is the time that a line's clock is behind that of records, by `pairs` of a request and a record that
    belong to nothing else; 0 where there are too few of them. A record of a request is `least` to `most` newer than its
    line.
    """

    difference: int = 0
    pairs: int = 0
    least: int = -_EARLY
    most: int = _LATE


def estimate(requests: Iterable[Request], records: Mapping[int, ChangedRecord], *, resolution: int) -> Clock:
    """The clock of one node's requests; its lines have times in steps of `resolution` milliseconds.

    A pair is a request and a record of one resource that no other request, and no other record of the same kind, has.
    Pairs count where more than half of them agree.
    """
    differences = sorted(_differences(requests, records))
    agreeing = _densest(differences)
    if len(agreeing) < _LEAST_PAIRS or 2 * len(agreeing) <= len(differences):
        return Clock(least=-_EARLY - resolution, most=_LATE)
    return Clock(
        difference=agreeing[len(agreeing) // 2],
        pairs=len(agreeing),
        least=agreeing[0] - _EARLY - resolution,
        most=agreeing[-1] + _LATE,
    )


def _differences(requests: Iterable[Request], records: Mapping[int, ChangedRecord]) -> Iterable[int]:
    """The time from request to record of each pair."""
    asked: dict[tuple[str, str], set[int]] = {}
    for request in requests:
        for name in request.names:
            asked.setdefault((request.request, name), set()).add(request.last)
    made: dict[tuple[str, str], set[int]] = {}
    for record in records.values():
        if record.cause.name is not None and record.time >= 0:
            made.setdefault((record.cause.requests[0], record.cause.name), set()).add(record.time)
    for key, times in asked.items():
        if len(times) == 1 and len(made.get(key, ())) == 1:
            yield min(made[key]) - min(times)


def _densest(differences: Sequence[int]) -> Sequence[int]:
    """The longest run of sorted differences that agree."""
    best, begin = differences[:0], 0
    for end, difference in enumerate(differences):
        while difference - differences[begin] > _TOGETHER:
            begin += 1
        if end + 1 - begin > len(best):
            best = differences[begin : end + 1]
    return best
