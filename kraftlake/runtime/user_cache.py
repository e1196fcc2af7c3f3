"""The cache folders of a user, for Spark's jars and compiled code. They can be deleted at any time.

Their code is executed, so each folder belongs to the user alone (mode 0700).
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


def temporary_cache() -> Path:
    """A private folder under `$TMPDIR`, else /tmp, created if missing: in place of an unusable `user_cache`.

    Raises OSError if it can't be created or belongs to another user.
    """
    return private_folder(temporary_cache_path())


def temporary_cache_path() -> Path:
    """The path of `temporary_cache`, which may not exist."""
    return Path(os.environ.get("TMPDIR") or "/tmp") / f"kraftlake-{os.getuid()}"  # noqa: S108 - its owner is checked


def private_folder(folder: Path) -> Path:
    """Create `folder` if missing, with mode 0700; OSError if it is a link or belongs to another user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(20, "it is a link", str(folder))
    if found.st_uid != os.getuid():
        raise PermissionError(1, "it belongs to another user", str(folder))
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder
