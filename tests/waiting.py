"""Waits for what other threads and processes do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 120.0
"""The seconds until something is called stuck."""


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


def is_alive(pid: int) -> bool:
    """Whether a process of that id is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
