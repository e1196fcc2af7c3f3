"""How a function is compiled: once a machine, kept in a folder that only its user can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.cgutils import get_null_value
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

F = TypeVar("F", bound=Callable[..., Any])


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/kraftlake/numba` (or under ~/.cache), of mode 0700, and in it a folder for these very sources.

    numba looks at the file of a function only, not at the files of those that it calls. None where the folder can't be
    made or somebody else could write to it, for what lies in it is run: then every process compiles for itself.
    """
    try:
        root = os.environ.get("XDG_CACHE_HOME")
        folder = (Path(root) if root else Path.home() / ".cache") / "kraftlake" / "numba"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return None
        if stat.S_IMODE(found.st_mode) != 0o700:
            folder.chmod(0o700)
        sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
        folder = folder / sha256(sources).hexdigest()[:16]
        folder.mkdir(exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


_FOLDER = cache_folder()


def compiled(function: F) -> F:
    """`function`, compiled when it is first called, releasing the GIL; the code is kept in `cache_folder()`."""
    return _compiled(function, inline=False)


def inlined(function: F) -> F:
    """As `compiled`, put into each function that calls it."""
    return _compiled(function, inline=True)


def _compiled(function: F, *, inline: bool) -> F:
    before = numba.config.CACHE_DIR  # numba's other users in the process keep theirs
    numba.config.CACHE_DIR = "" if _FOLDER is None else str(_FOLDER)
    try:
        compile_ = numba.njit(nogil=True, cache=_FOLDER is not None, error_model="numpy", forceinline=inline)
        made: F = compile_(function)
    finally:
        numba.config.CACHE_DIR = before
    return made


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(_: Any, array: Any) -> Any:
    """The same array without a count of its references, which costs an atomic operation at every mention.

    The caller of the compiled function keeps the array alive.
    """

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = make_array(signature.args[0])(context, builder, value=values[0])
        made.meminfo = get_null_value(made.meminfo.type)
        made.parent = get_null_value(made.parent.type)
        return made._getvalue()

    return array(array), build
