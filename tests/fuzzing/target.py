"""A reader of bytes from outside, and how it is judged."""

from __future__ import annotations

import resource
import time
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
    most_seconds: float = 10.0
    """The CPU time that reading an input of a few kB may take: by a clock, a busy machine would be a finding."""

    def check(self, data: bytes) -> None:
        """Read the bytes; only a refusal may come of it, within MOST_MEMORY and `most_seconds`."""
        before, begun = _peak_memory(), time.process_time()
        with suppress(self.refusals):
            self.read(data)
        taken = _peak_memory() - before
        assert taken < MOST_MEMORY, f"{len(data):,} bytes take {taken >> 20:,} MB of memory"
        spent = time.process_time() - begun
        assert spent < self.most_seconds, f"{len(data):,} bytes take {spent:.1f} CPU seconds"


def _peak_memory() -> int:
    """The largest memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
