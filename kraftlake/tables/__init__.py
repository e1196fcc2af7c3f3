"""The derived tables of a lake: their descriptions, rows, catch-up, and states at an offset. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.tables.catch_up.table_run import Progress, RunResult, TableRun, table_run
    from kraftlake.tables.catch_up.updating import update_by_job, update_tables
    from kraftlake.tables.cluster_id import cluster_id_of
    from kraftlake.tables.derived_tables import derived_table
    from kraftlake.tables.events.log_events import LogEvents
    from kraftlake.tables.history.state_at import state_at
    from kraftlake.tables.image_partitions import partition_table
    from kraftlake.tables.jobs import JOBS, Job, job_named
    from kraftlake.tables.lake_table import LakeTable, TableDescription
    from kraftlake.tables.row_buffer import RowBuffer
    from kraftlake.tables.table_locks import hold_tables
    from kraftlake.tables.table_writer import Published, TableWriter
    from kraftlake.tables.trimming import first_offsets, known_offset_since, trim_tables

__all__ = [
    "JOBS",
    "Job",
    "LakeTable",
    "LogEvents",
    "Progress",
    "Published",
    "RowBuffer",
    "RunResult",
    "TableDescription",
    "TableRun",
    "TableWriter",
    "cluster_id_of",
    "derived_table",
    "first_offsets",
    "hold_tables",
    "job_named",
    "known_offset_since",
    "partition_table",
    "state_at",
    "table_run",
    "trim_tables",
    "update_by_job",
    "update_tables",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
