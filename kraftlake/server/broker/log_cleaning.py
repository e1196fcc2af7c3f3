"""The cleaning of a broker's logs, step by step on a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kraftlake.replica_manager.logs.cleaning.log_cleaner import CleanerConfig, LogCleaner
from kraftlake.runtime.scheduler import Scheduler

ENABLED: Final = "log.cleaner.enable"
_FIELDS: Final[Mapping[str, str]] = {
    "log.cleaner.dedupe.buffer.size": "dedupe_buffer_size",
    "log.cleaner.io.buffer.load.factor": "io_buffer_load_factor",
    "log.cleaner.io.max.bytes.per.second": "io_max_bytes_per_second",
    "log.cleaner.backoff.ms": "backoff_ms",
}
CLEANER_SETTINGS: Final = frozenset({ENABLED, *_FIELDS})
"""The settings of a broker's cleaner."""


def cleaner_config(value_of: Any) -> CleanerConfig:
    """The settings of a cleaner; `value_of` returns the value of a setting by its name."""
    return CleanerConfig(**{field: value_of(name) for name, field in _FIELDS.items()})


class CleaningLoop:
    """Cleans one log after the other, and looks for the next one after log.cleaner.backoff.ms where none is due."""

    def __init__(self, cleaner: LogCleaner, scheduler: Scheduler) -> None:
        self._cleaner = cleaner
        self._scheduler = scheduler
        self._steps: Iterator[float] | None = None

    def step(self) -> None:
        """Take the next step, and schedule the one after it."""
        if self._steps is None:
            self._steps = self._cleaner.clean_next()
        wait_s = None if self._steps is None else next(self._steps, None)
        if wait_s is not None:
            wait_ms = 1_000 * wait_s
        else:
            wait_ms = self._cleaner.config.backoff_ms if self._steps is None else 0
            self._steps = None
        self._scheduler.after(wait_ms, self.step)
