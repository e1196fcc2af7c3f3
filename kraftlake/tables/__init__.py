"""The derived tables of a lake: their descriptions, rows, catch-up, and what was so at an offset. Knows no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.tables.events.log_events import LogEvents
    from kraftlake.tables.history.state_at import state_at
    from kraftlake.tables.jobs import JOBS, Job
    from kraftlake.tables.lake_table import LakeTable, TableDescription
    from kraftlake.tables.partition_table import partition_table
    from kraftlake.tables.table_writer import Published, RowBuffer, TableWriter

__all__ = [
    "JOBS",
    "Job",
    "LakeTable",
    "LogEvents",
    "Published",
    "RowBuffer",
    "TableDescription",
    "TableWriter",
    "partition_table",
    "state_at",
]


__getattr__, __dir__ = lazy_exports(__name__, __all__)
