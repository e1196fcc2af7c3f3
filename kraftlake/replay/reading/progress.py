"""Progress of long work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias, TypeVar

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a phase, the number of offsets done, and their total (0 if unknown)."""

REPLAYING: Final = "replaying"
LOADING: Final = "loading"
"""Phases of a replay: the log, and the snapshot that it starts from."""


class EndsAtOffset(Protocol):
    """One batch, or consecutive ones."""

    @property
    def last_offset(self) -> int:
        """Its last offset."""


ChunkT = TypeVar("ChunkT", bound=EndsAtOffset)


def with_progress(parts: Iterable[ChunkT], progress: Progress | None, phase: str, end: int = 0) -> Iterable[ChunkT]:
    """The same chunks; `progress` is called after each, with its end, at most `end`."""
    return parts if progress is None else _told(parts, progress, phase, end)


def _told(parts: Iterable[ChunkT], progress: Progress, phase: str, end: int) -> Iterator[ChunkT]:
    for part in parts:
        yield part
        progress(phase, min(part.last_offset + 1, end), end)
