"""The cache folder of a user, for Spark's jars. It can be deleted at any time.

The folder contains executable code, so only its user has access (mode 0700).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kraftlake.runtime.errors import EnvironmentFaultError


def user_cache() -> Path:
    """The cache folder of this user, created if missing, with mode 0700.

    `$KRAFTLAKE_CACHE`, else `kraftlake` under `$XDG_CACHE_HOME`, else `~/.cache/kraftlake`. Raises
    EnvironmentFaultError if it can't be created, or belongs to another user.
    """
    try:
        cache = _user_cache_path()
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(cache.stat().st_mode) != 0o700:
            cache.chmod(0o700)
    except (OSError, RuntimeError) as fault:  # RuntimeError: there is no home folder
        place, reason = (fault.filename, fault.strerror) if isinstance(fault, OSError) else ("~/.cache", fault)
        raise EnvironmentFaultError(
            f"the cache folder {place} can't be used ({reason}): set KRAFTLAKE_CACHE to a folder of yours"
        ) from fault
    return cache


def _user_cache_path() -> Path:
    if named := os.environ.get("KRAFTLAKE_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kraftlake"
