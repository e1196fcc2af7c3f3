"""Has pyarrow do without pandas, in a process of kraftlake's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_PANDAS: Final = "pandas"


class _Unseen(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - whoever imports gives it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == _PANDAS:
            raise ModuleNotFoundError(f"{_PANDAS} is not to be seen yet", name=_PANDAS)
        return None


def leave_pandas_out() -> None:
    """Keep pyarrow from importing pandas, as it does at its first conversion of anything that is Python's.

    It wants to know whether that is of pandas, which takes a quarter of a second of CPU: as long as a hundred thousand
    records. It looks once and remembers. What asks for pandas by name, pyarrow's `to_pandas` among it, gets it as ever,
    but `pa.array` takes a Series for any other sequence, and pandas' NA for an unknown object. So this is for a process
    in which nobody makes one, before it starts threads. Where pandas is there already, nothing is done.
    """
    if _PANDAS in sys.modules:
        return
    import pyarrow as pa

    unseen = _Unseen()
    sys.meta_path.insert(0, unseen)
    try:
        pa.array([0]).to_numpy()  # there are two that look, one for either way
    finally:
        sys.meta_path.remove(unseen)
