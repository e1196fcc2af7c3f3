"""Waits for what other threads and processes do."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Self

P = ParamSpec("P")
PATIENCE = 120.0
"""The seconds until something is called stuck."""
_ATTEMPTS = 8


def wait_for(question: Callable[[], Any], what: object = "") -> Any:
    """The first true answer.

    A question that takes long, such as one that reads a log, is asked less often: it leaves the processor to those that
    it waits for.
    """
    deadline = time.monotonic() + PATIENCE
    asked = time.monotonic()
    while not (answer := question()):
        took = time.monotonic() - asked
        assert asked < deadline, f"waited {PATIENCE:g} s in vain: {what or question}"
        time.sleep(min(0.5, 0.02 + 2 * took))
        asked = time.monotonic()
    return answer


def is_readable(descriptor: int, seconds: float = PATIENCE) -> bool:
    """Whether something can be read from a file descriptor within a time; it may be above those of `select`."""
    asked = select.poll()
    asked.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(asked.poll(seconds * 1_000))


def is_alive(pid: int) -> bool:
    """Whether a process of that id is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def unless_paused(seconds: float) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A test with limits so short that a busy machine may pass them: it begins again where the machine did.

    The machine did it if a thread that has nothing to do but to wake up did so this much too late meanwhile.
    """

    def decorate(test: Callable[P, None]) -> Callable[P, None]:
        @wraps(test)
        def begun_again(*args: P.args, **options: P.kwargs) -> None:
            for _ in range(_ATTEMPTS):
                with Pauses() as pauses:
                    try:
                        return test(*args, **options)
                    except (KeyboardInterrupt, SystemExit):
                        raise
                    except BaseException:  # what pytest raises is no Exception
                        if pauses.longest < seconds:
                            raise
            return test(*args, **options)

        return begun_again

    return decorate


class Pauses:
    """Measures how late a thread wakes up."""

    _EACH = 0.01

    def __init__(self) -> None:
        self._longest = 0.0
        self._ended = threading.Event()
        self._slept_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def longest(self) -> float:
        """The seconds of the longest delay up to now."""
        return max(self._longest, self._late())

    def _late(self) -> float:
        return time.monotonic() - self._slept_at - self._EACH

    def _run(self) -> None:
        while not self._ended.is_set():
            self._slept_at = time.monotonic()
            time.sleep(self._EACH)
            self._longest = max(self._longest, self._late())
