"""The cleaning of a broker's logs, step by step on threads of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any, Final

from kraftlake.replica_manager.logs.cleaning.log_cleaner import CleanerConfig, LogCleaner
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.event_queue import KafkaEventQueue
from kraftlake.runtime.scheduler import Scheduler

ENABLED: Final = "log.cleaner.enable"
_FIELDS: Final[Mapping[str, str]] = {
    "log.cleaner.threads": "threads",
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
    """Cleans one log after the other, and looks for the next one after log.cleaner.backoff.ms where none is due.

    A loop whose number is not below log.cleaner.threads looks for none.
    """

    def __init__(self, cleaner: LogCleaner, number: int, clock: Clock) -> None:
        self._cleaner = cleaner
        self._number = number
        self.scheduler = Scheduler(KafkaEventQueue(clock, f"log-cleaner-{number}"))
        self._steps: Iterator[float] | None = None

    def step(self) -> None:
        """Take the next step, and schedule the one after it."""
        try:
            wait_ms = self._step()
        except Exception:
            self._cleaner.dead_threads.add(self._number)
            self._steps = None
            raise
        self.scheduler.after(wait_ms, self.step)

    def _step(self) -> float:
        config = self._cleaner.config
        if self._steps is None and self._number < config.threads:
            self._steps = self._cleaner.clean_next(self._number)
        if self._steps is None:
            return config.backoff_ms
        wait_s = next(self._steps, None)
        if wait_s is None:
            self._steps = None
            return 0
        return 1_000 * wait_s


class CleaningThreads:
    """The threads that clean the logs of a broker, from `start` to `shutdown`."""

    def __init__(self, cleaner: LogCleaner, clock: Clock) -> None:
        self._cleaner, self._clock = cleaner, clock
        self._loops: list[CleaningLoop] = []
        self._lock = Lock()
        self._runs = False

    def start(self, delay_ms: float) -> None:
        """Begin to clean after some time."""
        with self._lock:
            self._runs = True
        self.reconfigure(self._cleaner.config, delay_ms)

    def reconfigure(self, config: CleanerConfig, delay_ms: float = 0) -> None:
        """Clean by other settings from the next cleanings on; a thread takes the place of each dead one."""
        with self._lock:
            self._cleaner.config = config
            if not self._runs:
                return
            for number, loop in enumerate(self._loops):
                if number in self._cleaner.dead_threads:
                    self._cleaner.dead_threads.discard(number)
                    loop.scheduler.after(delay_ms, loop.step)
            for number in range(len(self._loops), config.threads):
                loop = CleaningLoop(self._cleaner, number, self._clock)
                self._loops.append(loop)
                loop.scheduler.after(delay_ms, loop.step)

    def shutdown(self) -> None:
        """Clean no more; returns when all threads have ended."""
        with self._lock:
            self._runs = False
        for loop in self._loops:
            loop.scheduler.shutdown()
