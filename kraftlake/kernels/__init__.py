"""Compiled loops over bytes and numbers, for bulk work: records found in batches, topic records replayed on rows.

Nothing here is imported unless tens of thousands of records are to be replayed; where numba is missing the same is
done record by record with objects.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec

__all__ = ["available", "loaded"]


@cache
def available() -> bool:
    """Whether numba and numpy are installed."""
    return find_spec("numba") is not None and find_spec("numpy") is not None


def loaded() -> bool:
    """Whether the process uses them already: then they pay for smaller work too."""
    return f"{__name__}.compiled" in sys.modules
