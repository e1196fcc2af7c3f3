"""Judges what clients of a cluster did and saw, by nothing but their own operations.

In the manner of Elle's list-append: a partition is a list, a produced value is an append whose acknowledgement gives
its place, and a fetched record is a read of a place. Times are nanoseconds of one clock; an operation took effect
somewhere between its two times. This module imports nothing of the project, so that it shares no mistake with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Append:
    """A value, different from all others, that a producer wrote; its offset is known where it was acknowledged.

    What was neither acknowledged nor refused may be there or not.
    """

    partition: int
    value: bytes
    began: int
    ended: int
    outcome: Literal["acknowledged", "refused", "unknown"]
    offset: int | None = None


@attrs.frozen(kw_only=True)
class Read:
    """A record that a consumer got; `began` is when it asked for more."""

    consumer: str
    partition: int
    offset: int
    value: bytes
    began: int
    ended: int


@attrs.frozen(kw_only=True)
class End:
    """The end offset of a partition, as a client received it."""

    partition: int
    offset: int
    began: int
    ended: int


@attrs.define
class History:
    """The operations of all clients, those of each in its order.

    `finished` are the partitions that were read to their ends when all was done.
    """

    appends: list[Append] = attrs.field(factory=list)
    reads: list[Read] = attrs.field(factory=list)
    ends: list[End] = attrs.field(factory=list)
    finished: set[int] = attrs.field(factory=set)


def violations(history: History) -> list[str]:
    """Whatever a cluster that keeps what it acknowledges may not do: at most three of a kind."""
    found: list[str] = []
    for partition in sorted({one.partition for one in (*history.appends, *history.reads, *history.ends)}):
        part = History(
            appends=[one for one in history.appends if one.partition == partition],
            reads=[one for one in history.reads if one.partition == partition],
            ends=[one for one in history.ends if one.partition == partition],
            finished=history.finished & {partition},
        )
        for check in CHECKS:
            found += [f"partition {partition}: {sentence}" for sentence, _ in zip(check(part), range(3), strict=False)]
    return found


def _one_value_a_place(history: History) -> Iterator[str]:
    """Every place holds one value, whoever looks, and no value is at two places."""
    values, places = dict[int, bytes](), dict[bytes, int]()
    known = [(one.offset, one.value) for one in history.appends if one.offset is not None]
    for offset, value in (*known, *((one.offset, one.value) for one in history.reads)):
        if values.setdefault(offset, value) != value:
            yield f"offset {offset} holds two values, {values[offset][:20]!r} and {value[:20]!r}"
        if places.setdefault(value, offset) != offset:
            yield f"{value[:20]!r} is at two offsets, {places[value]} and {offset}"


def _nothing_is_lost(history: History) -> Iterator[str]:
    """What was acknowledged is read by who reads all of the partition in the end."""
    if history.finished:
        read = {one.offset for one in history.reads}
        for one in history.appends:
            if one.outcome == "acknowledged" and one.offset not in read:
                yield f"the acknowledged {one.value[:20]!r} at offset {one.offset} is lost"


def _nothing_comes_from_nowhere(history: History) -> Iterator[str]:
    """What is read was written before, and was not refused."""
    written = {one.value: one for one in history.appends}
    for read in history.reads:
        append = written.get(read.value)
        if append is None:
            yield f"{read.value[:20]!r} at offset {read.offset} was never written"
        elif append.outcome == "refused":
            yield f"the refused {read.value[:20]!r} is at offset {read.offset}"
        elif append.began > read.ended:
            yield f"{read.value[:20]!r} at offset {read.offset} was read before it was written"


def _appends_keep_their_order(history: History) -> Iterator[str]:
    """An append that began after another one was acknowledged lies behind it: appends are linearizable."""
    acknowledged = [one for one in history.appends if one.offset is not None]
    for one, highest in _after(acknowledged, acknowledged, _offset):
        if one.offset is not None and one.offset <= highest:
            yield f"{one.value[:20]!r} at offset {one.offset} was written after offset {highest} was acknowledged"


def _readers_go_forward(history: History) -> Iterator[str]:
    """Each consumer reads one offset after the other, without a gap."""
    last = dict[str, int]()
    for one in history.reads:
        before = last.get(one.consumer)
        if before is not None and one.offset != before + 1:
            yield f"consumer {one.consumer} read offset {one.offset} after {before}"
        last[one.consumer] = one.offset


def _ends_do_not_go_back(history: History) -> Iterator[str]:
    """An end offset is above all that was acknowledged, read or shown as the end before anybody asked for it."""
    acknowledged = [one for one in history.appends if one.offset is not None]
    for what, before in (("acknowledged", acknowledged), ("read", history.reads)):
        for end, highest in _after(history.ends, before, _offset):
            if end.offset <= highest:
                yield f"the end is {end.offset} though offset {highest} had been {what}"
    for end, highest in _after(history.ends, history.ends, _offset):
        if end.offset < highest:
            yield f"the end is {end.offset} though it had been {highest}"


def _offset(one: Any) -> int:
    return -1 if one.offset is None else int(one.offset)


def _after(later: Iterable[T], earlier: Iterable[Any], value: Callable[[Any], int]) -> Iterator[tuple[T, int]]:
    """Each operation of `later` with the highest value of those that had ended when it began."""
    waiting = sorted(earlier, key=lambda one: one.ended, reverse=True)
    highest = -1
    for one in sorted(later, key=lambda one: one.began):  # type: ignore[attr-defined]
        while waiting and waiting[-1].ended < one.began:  # type: ignore[attr-defined]
            highest = max(highest, value(waiting.pop()))
        yield one, highest


CHECKS: tuple[Callable[[History], Iterator[str]], ...] = (
    _one_value_a_place,
    _nothing_is_lost,
    _nothing_comes_from_nowhere,
    _appends_keep_their_order,
    _readers_go_forward,
    _ends_do_not_go_back,
)
