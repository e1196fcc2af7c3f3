"""The Delta table `records/`: every record of the log in typed columns, for SQL.

A row is that of `spark.read.format("kraft")`, with secrets redacted. Executors decode and write a large backlog, a
file in each task, and the driver commits the files in steps; the records after it go through the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.storage.location import Location, fixed_location, lake_location
from kraftlake.records.typed_rows import typed_schema
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.executor_environment import lend_store_access
from kraftlake.spark_jobs.fold.chunks import fault_to_json, raise_first
from kraftlake.spark_jobs.fold.frames import telling_faults
from kraftlake.spark_jobs.record_scan import RECORDS_A_PART, RecordScan, read_part
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.stream_options import StreamOptions, StreamResult
from kraftlake.spark_jobs.table_stream import run_tables
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.records_table import RECORDS, RecordsWriter
from kraftlake.tables.table_locks import hold_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.spark_jobs.replay_listener import ReplayListener

BACKLOG: Final = 1 << 20
"""The number of missing records from which on executors write them: for fewer, starting tasks takes longer."""

_PARTS_A_COMMIT = 16


def run_records(
    lake: str | Location,
    *,
    options: StreamOptions | None = None,
    spark: SparkSession | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Bring `records/` up to the end of the lake's log; as `run_tables`, but executors write a large backlog."""
    lake = fixed_location(lake)
    options = options or StreamOptions()
    options.check()
    with RunSession(spark, "kraftlake records", options.master) as session:
        write_backlog(lake, session, on_progress)
        return run_tables(
            "records",
            lake,
            [RecordsWriter()],
            options=options,
            spark=session.held,
            on_progress=on_progress,
            listener=listener,
        )


def write_backlog(lake: Location, session: RunSession, on_progress: Callable[[int, int], None] | None = None) -> int:
    """Let executors write the records that `records/` lacks, if they are many; returns their number.

    Each commit has whole batches and the offset at their end, so that the next run goes on there after a kill. Raises
    what reading and writing the lake raise, in any process, and EnvironmentFaultError if Spark fails.
    """
    log = MetadataLog.open(lake)
    with hold_tables(lake, [RECORDS.name]):
        table = LakeTable(RECORDS, lake)
        covered = table.last_offset()
        first = log.start_offset if covered is None else covered + 1
        if log.end_offset - first < BACKLOG or first < log.start_offset:
            return 0
        table.create(log.table_id)
        context = session.get().sparkContext
        lend_store_access(context)
        for start, last in _commits(log, first):
            parts = [(begin, min(begin + RECORDS_A_PART - 1, last)) for begin in range(start, last + 1, RECORDS_A_PART)]
            write = partial(_written_or_fault, partial(write_part, str(lake)))
            with telling_faults():
                made = context.parallelize(parts, len(parts)).map(write).collect()
            raise_first(fault for fault in made if isinstance(fault, str))
            table.append_files(made, last)
            if on_progress is not None:
                on_progress(last, log.end_offset)
        return log.end_offset - first


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


def _commits(log: MetadataLog, first: int) -> Iterator[tuple[int, int]]:
    """Ranges of offsets, both ends included, that begin and end with batches."""
    while first < log.end_offset:
        end = log.batches_end(first, _PARTS_A_COMMIT * RECORDS_A_PART)
        yield first, end - 1
        first = end
