"""The derived tables of a lake: their descriptions, rows, catch-up, and what was so at an offset. Knows no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.tables.history.state_at import state_at
    from kraftlake.tables.jobs import JOBS, Job
    from kraftlake.tables.lake_table import LakeTable, TableDescription
    from kraftlake.tables.partition_table import partition_table
    from kraftlake.tables.table_writer import Published, RowBuffer, TableWriter

__all__ = [
    "JOBS",
    "Job",
    "LakeTable",
    "Published",
    "RowBuffer",
    "TableDescription",
    "TableWriter",
    "partition_table",
    "state_at",
]

_HOMES = {
    "JOBS": "jobs",
    "Job": "jobs",
    "LakeTable": "lake_table",
    "Published": "table_writer",
    "RowBuffer": "table_writer",
    "TableDescription": "lake_table",
    "TableWriter": "table_writer",
    "partition_table": "partition_table",
    "state_at": "history.state_at",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOMES, __all__)
