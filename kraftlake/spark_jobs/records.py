"""The Delta table `records/`: every record of the log in typed columns, for SQL.

A row is one of `spark.read.format("kraft")`, with secrets redacted. Executors decode the records and write the files,
one in each task, and the driver commits the files in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.records.typed_rows import typed_schema
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.backlog import ExecutorTables, StepTotals
from kraftlake.spark_jobs.executor_environment import lend_store_access
from kraftlake.spark_jobs.fold.frames import telling_faults
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.record_scan import RECORDS_A_PART, RecordScan, read_part
from kraftlake.tables.records_table import RECORDS
from kraftlake.tables.shards.faults import fault_to_json, raise_first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.tables.catch_up.table_run import Progress

_PARTS_A_COMMIT = 16


@attrs.frozen
class RecordsBacklog(ExecutorTables):
    """The table `records/` of a lake."""

    lake: Location

    def advance(self, spark: SparkSession, last: int, on_step: Progress) -> StepTotals:
        """Write the records up to an offset on the executors: see Backlog.

        Each commit has whole batches and the offset at their end, so that the next run continues there after a kill.
        """
        log = MetadataLog.open(self.lake)
        table = LakeTable(RECORDS, self.lake)
        covered = table.last_offset()
        first = log.start_offset if covered is None else covered + 1
        table.create(log.table_id)
        context, steps = spark.sparkContext, 0
        lend_store_access(context)
        for start, end in _commits(log, first, last):
            parts = [(begin, min(begin + RECORDS_A_PART - 1, end)) for begin in range(start, end + 1, RECORDS_A_PART)]
            write = partial(_written_or_fault, partial(write_part, str(self.lake)))
            with telling_faults():
                made = context.parallelize(parts, len(parts)).map(write).collect()
            raise_first(fault for fault in made if isinstance(fault, str))
            table.append_files(made, end)
            steps += 1
            on_step(end, last + 1)
        table.finish()
        return StepTotals(rows={RECORDS.name: max(last + 1 - first, 0)}, steps=steps)


def _written_or_fault(write: Callable[[tuple[int, int]], AddFile], part: tuple[int, int]) -> AddFile | str:
    """The result of a task: the file, or an error of kraftlake as JSON."""
    try:
        return write(part)
    except KraftlakeError as fault:
        return fault_to_json(fault)


def write_part(lake: str, part: tuple[int, int]) -> AddFile:
    """Write the rows of offsets [first, last] as a data file of `records/`, which is not in the table yet."""
    first, last = part
    scan = RecordScan(source=lake, wanted=typed_schema(), first=first, last=last)
    rows = pa.concat_tables(read_part(scan))
    return LakeTable(RECORDS, lake_location(lake)).write_file(rows.cast(RECORDS.schema), last)


def _commits(log: MetadataLog, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Ranges of the offsets up to `last`, both ends included, that begin and end with batches."""
    while first <= last:
        end = min(log.batches_end(first, _PARTS_A_COMMIT * RECORDS_A_PART), last + 1)
        yield first, end - 1
        first = end
