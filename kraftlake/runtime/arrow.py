"""pyarrow's compute and parquet modules, imported at their first use: together the imports take 25 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_module import LazyModule

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    pc = LazyModule("pyarrow.compute")
    pq = LazyModule("pyarrow.parquet")

__all__ = ["pc", "pq"]
