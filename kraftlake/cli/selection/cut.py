"""The lines of a long answer that a command line asks for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Cut(NamedTuple):
    """The first `limit` lines or the last `tail`, or `everything`; without any of them what a terminal has room for."""

    limit: int | None = None
    tail: int | None = None
    everything: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether a number of lines is asked for."""
        return self.limit is not None or self.tail is not None

    @property
    def is_given(self) -> bool:
        """Whether it says which lines are shown."""
        return self.everything or self.is_cut

    def of(self, lines: Sequence[T]) -> Sequence[T]:
        """The lines that it leaves of some."""
        return lines[: self.limit] if self.tail is None else lines[-self.tail :]

    def among(self, lines: Iterable[T]) -> Iterator[T]:
        """The lines that it leaves, which may be asked for one by one."""
        return islice(lines, self.limit) if self.tail is None else iter(deque(lines, self.tail))
