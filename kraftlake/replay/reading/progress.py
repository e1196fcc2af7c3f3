"""How those who wait are told of long work, by whoever does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias, TypeVar

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called now and then with a phase, the offsets done, and those there are to do (0 where that is not known)."""

REPLAYING: Final = "replaying"
LOADING: Final = "loading"
"""Phases of a replay: the log, and the snapshot that it starts from."""


class EndsAtOffset(Protocol):
    """A batch, or many that follow each other."""

    @property
    def last_offset(self) -> int:
        """Its last offset."""


ChunkT = TypeVar("ChunkT", bound=EndsAtOffset)


def with_progress(parts: Iterable[ChunkT], progress: Progress | None, phase: str, end: int = 0) -> Iterable[ChunkT]:
    """The same parts; when each of them is done, `progress` hears up to which offset of those below `end`."""
    return parts if progress is None else _told(parts, progress, phase, end)


def _told(parts: Iterable[ChunkT], progress: Progress, phase: str, end: int) -> Iterator[ChunkT]:
    for part in parts:
        yield part
        progress(phase, min(part.last_offset + 1, end), end)
