"""Progress of long work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from kraftlake.replay.reading.chunks import Chunk

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a phase, the number of offsets done, and their total (0 if unknown)."""

REPLAYING: Final = "replaying"
LOADING: Final = "loading"
"""Phases of a replay: the log, and the snapshot that it starts from."""

ChunkT = TypeVar("ChunkT", bound="Chunk")


def no_progress(phase: str, done: int, total: int) -> None:
    """Report nothing."""


def with_progress(chunks: Iterable[ChunkT], progress: Progress | None, phase: str, end: int = 0) -> Iterable[ChunkT]:
    """The same chunks; `progress` is called after each, with the chunk's end, at most `end`."""
    return chunks if progress is None else _reported(chunks, progress, phase, end)


def _reported(chunks: Iterable[ChunkT], progress: Progress, phase: str, end: int) -> Iterator[ChunkT]:
    for chunk in chunks:
        yield chunk
        progress(phase, min(chunk.last_offset + 1, end), end)
