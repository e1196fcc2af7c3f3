"""The Delta table `records/`: every record of the log in typed columns, for SQL.

A row is one of `spark.read.format("kraft")`, with secrets redacted. Executors decode the records and write the files,
one in each task, and the driver commits the files in steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.typed_rows import typed_schema
from kraftlake.spark_jobs.stream_steps import ExecutorStep
from kraftlake.spark_jobs.tasks import in_tasks, lake_here, this_executor
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.record_scan import RECORDS_A_PART, RecordScan, read_part
from kraftlake.tables.records_table import RECORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS_A_COMMIT = 16


def record_steps(lake: Location, spark: SparkSession, last: int) -> Iterator[ExecutorStep]:
    """Write the records up to an offset on the executors: see ExecutorSteps.

    Each commit has whole batches and the offset at their end, so that the next run continues there after a kill.
    """
    log = MetadataLog.open(lake)
    table = LakeTable(RECORDS, lake)
    covered = table.last_offset()
    table.create(log.table_id)
    for start, end in _commits(log, log.start_offset if covered is None else covered + 1, last):
        parts = [(begin, min(begin + RECORDS_A_PART - 1, end)) for begin in range(start, end + 1, RECORDS_A_PART)]
        made = in_tasks(spark, partial(write_part, str(lake)), parts)
        table.append_files([file for file, _ in made], end)
        executors = frozenset(executor for _, executor in made)
        yield ExecutorStep(offset=end, end=last + 1, rows={RECORDS.name: end + 1 - start}, executors=executors)
    table.finish()


def write_part(lake: str, part: tuple[int, int]) -> tuple[AddFile, str]:
    """Write the rows of offsets [first, last] as a data file of `records/`, which is not in the table yet.

    Returns it, and this process's executor.
    """
    first, last = part
    place = lake_here(lake)
    scan = RecordScan(source=lake, wanted=typed_schema(), first=first, last=last)
    rows = pa.concat_tables(read_part(scan))
    return LakeTable(RECORDS, place).write_file(rows.cast(RECORDS.schema), last), this_executor()


def _commits(log: MetadataLog, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Ranges of the offsets up to `last`, both ends included, that begin and end with batches."""
    while first <= last:
        end = min(log.batches_end(first, _PARTS_A_COMMIT * RECORDS_A_PART), last + 1)
        yield first, end - 1
        first = end
