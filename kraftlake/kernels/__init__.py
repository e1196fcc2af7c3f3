"""Compiled loops over bytes and numbers, for bulk work: records found in batches, topic records replayed on rows.

Nothing here is imported unless tens of thousands of records are to be replayed; where numba is missing or broken, or
compiled code can be kept nowhere, the same is done record by record with objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

from kraftlake.runtime.errors import KraftlakeError

__all__ = ["NoCompiledCodeError", "available", "give_up", "loaded", "retried_without"]

P = ParamSpec("P")
R = TypeVar("R")


class NoCompiledCodeError(KraftlakeError):
    """A function can't be compiled: numba is broken, or what it compiles can be kept nowhere."""


@cache
def available() -> bool:
    """Whether compiled code can be had: numpy and numba are installed and work, and there is a folder to keep code in.

    numba itself is imported where nothing was compiled yet; what is wrong with it is said on stderr.
    """
    if _given_up or find_spec("numba") is None or find_spec("numpy") is None:
        return False
    try:
        from kraftlake.kernels import machine_code

        if not machine_code.has_code():
            machine_code.folder_to_fill()
            import_module("numba")
    except Exception as fault:  # an installation can be broken in any way
        give_up(fault)
    return not _given_up


_given_up: list[BaseException] = []
"""Why this process does without from some moment on; empty while it does not."""


def give_up(fault: BaseException) -> None:
    """Do without compiled code from now on: `available` says no."""
    if not _given_up:
        _say(fault)
    _given_up.append(fault)
    available.cache_clear()


def retried_without(function: Callable[P, R]) -> Callable[P, R]:
    """A function of the past alone, done over with objects where compiled code is missed in the middle of it."""

    @wraps(function)
    def done(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except NoCompiledCodeError:
            return function(*args, **kwargs)

    return done


def _say(fault: BaseException) -> None:
    reason = fault if isinstance(fault, NoCompiledCodeError) else f"numba does not work: {fault}"
    print(f"kraftlake replays without compiled code, slower: {reason}", file=sys.stderr)  # noqa: T201


def loaded() -> bool:
    """Whether the process uses them already: then they pay for smaller work too."""
    return f"{__name__}.compiled" in sys.modules and available()
