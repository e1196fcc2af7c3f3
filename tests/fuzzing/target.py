"""A reader of bytes from outside, and how it is judged."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable
from contextlib import suppress

import attrs

from kraftlake.runtime.errors import KraftlakeError

FILES: tuple[type[Exception], ...] = (KraftlakeError,)
"""What readers of files refuse by."""
MOST_MEMORY = 512 << 20
"""What the process may grow by while it reads an input of a few kB."""


@attrs.frozen
class Target:
    """Bytes to read, what may refuse them, and bytes to begin with."""

    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    seeds: Callable[[], Iterable[bytes]]

    def check(self, data: bytes) -> None:
        """Read the bytes; only a refusal may come of it, and no more memory than MOST_MEMORY."""
        before = _peak_memory()
        with suppress(self.refusals):
            self.read(data)
        taken = _peak_memory() - before
        assert taken < MOST_MEMORY, f"{len(data):,} bytes take {taken >> 20:,} MB of memory"


def _peak_memory() -> int:
    """The largest memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
