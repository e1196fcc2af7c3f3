"""A loop of assertions that has a turn; `tools/skippable_assertions.py` asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def at_least_one(iterable: Iterable[T]) -> Iterator[T]:
    """The items of an iterable, one by one; a failure where it has none."""
    count = 0
    for count, item in enumerate(iterable, 1):  # noqa: B007
        yield item
    assert count, "the loop had no turn: nothing was asserted"
