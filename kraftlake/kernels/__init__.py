"""Compiled loops over bytes and numbers, for bulk work: records found in batches, topic records replayed on rows.

Nothing here is imported unless tens of thousands of records are to be replayed, or many batches appended at once.
Whether there is compiled code is decided once a process, by `available`; where there is none, the same work is done
record by record with objects.
"""

from __future__ import annotations

import sys
from functools import cache

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.extras import EXTRAS, install_command, is_installed

__all__ = ["available", "loaded", "pays"]

_EXTRA = "fast"


@cache
def available() -> bool:
    """Whether this process uses compiled code: the extra `fast` is installed, works, and has a folder to keep code in.

    One small function is run to find out, which is compiled where nothing was compiled for this machine yet. What is
    wrong with an installation is printed on stderr, once. After the answer True, code that can't be compiled is an
    EnvironmentFaultError.
    """
    if not all(map(is_installed, EXTRAS[_EXTRA])):
        return False
    try:
        from kraftlake.kernels.aot.compiled import probe

        probe(0)
    except Exception as fault:  # an installation can be broken in any way
        reason = fault if isinstance(fault, EnvironmentFaultError) else f"numba does not work: {fault}"
        _note(f"kraftlake replays without compiled code, slower: {reason}")
        return False
    return True


def pays(count: int, least: int) -> bool:
    """Whether compiled code does work on `count` records or bytes: it is available, and they are `least` or more.

    Where it would but is not installed, one line on stderr names the extra to install.
    """
    if count < least:
        return False
    if not available():
        _note_missing()
        return False
    return True


def loaded() -> bool:
    """Whether the process uses compiled code already: then it pays for smaller work too."""
    return f"{__name__}.aot.compiled" in sys.modules and available()


@cache
def _note_missing() -> None:
    if not all(map(is_installed, EXTRAS[_EXTRA])):
        _note(f"kraftlake replays without compiled code, slower: {install_command(_EXTRA)} brings it.")


def _note(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201
