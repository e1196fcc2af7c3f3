"""Compiled loops over bytes and numbers, for bulk work: records found in batches, topic records replayed on rows.

Nothing here is imported unless tens of thousands of records are to be replayed; where numba is missing or broken the
same is done record by record with objects.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec

__all__ = ["available", "loaded"]


@cache
def available() -> bool:
    """Whether compiled code can be had: numpy and numba are installed, and work.

    numba itself is imported where nothing was compiled yet; what is wrong with it is said on stderr.
    """
    if find_spec("numba") is None or find_spec("numpy") is None:
        return False
    try:
        from kraftlake.kernels import machine_code

        if not machine_code.has_code():
            import_module("numba")
    except Exception as fault:  # an installation can be broken in any way
        print(f"kraftlake replays without compiled code, slower, for numba does not work: {fault}", file=sys.stderr)  # noqa: T201
        return False
    return True


def loaded() -> bool:
    """Whether the process uses them already: then they pay for smaller work too."""
    return f"{__name__}.compiled" in sys.modules and available()
