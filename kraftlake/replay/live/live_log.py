"""What a log that grows has to give, so that it can be watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.log_reader import LogReader


class LiveLog(Protocol):
    """A log that grows, read step by step by one thread. A replay starts from `reader`; `step` goes on at its end."""

    @property
    def reader(self) -> LogReader:
        """The log as it was at the beginning: its committed batches, and the snapshots beside them."""
        ...

    @property
    def seen_to(self) -> int:
        """The offset after the last whole batch that was seen, whether or not it is known to be committed."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why nothing comes, as a sentence, while that may pass; None where nothing is wrong."""
        ...

    def step(self) -> Sequence[RecordBatch]:
        """The next committed batches, a bounded number, without waiting; an empty sequence where there are none yet.

        They follow those of the step before without a gap, the first ones those of `reader`. Raises a KraftlakeError,
        one sentence, where the log can't be followed any further.
        """
        ...

    def close(self) -> None:
        """Release what is held open."""
        ...
