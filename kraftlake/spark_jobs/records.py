"""The Delta table `records/`: every record of the log in typed columns, for SQL.

A row is what `spark.read.format("kraft")` gives, secrets redacted. A large backlog is decoded and written by the
executors, a file each task, and committed in pieces by the driver; what follows goes through the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.table_state import read_table
from kraftlake.metadata_log.log_facts import LOG_TABLE
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
"""From so many missing records on, executors write them: fewer are in the table before tasks have started."""

_PARTS_A_COMMIT = 16


def run_records(
    lake: str | Location,
    *,
    options: StreamOptions | None = None,
    spark: SparkSession | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Bring `records/` up to the end of the lake's log; as `run_tables`, but for a large backlog."""
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
    """Let executors write what `records/` lacks, if that is much; gives how many records it was.

    Each commit takes whole batches and notes the offset that it ends with, so that a run that was killed goes on there.
    Raises what reading and writing the lake raise, wherever that is, and EnvironmentFaultError when Spark fails.
    """
    log = MetadataLog.open(lake)
    with hold_tables(lake, [RECORDS.name]):
        table = LakeTable(RECORDS, lake)
        covered = table.last_offset()
        first = log.start_offset if covered is None else covered + 1
        if log.end_offset - first < BACKLOG or first < log.start_offset:
            return 0
        table.create(read_table(lake / LOG_TABLE).metadata.id)
        context = session.get().sparkContext
        lend_store_access(context)
        for start, last in _commits(log, first):
            parts = [(begin, min(begin + RECORDS_A_PART - 1, last)) for begin in range(start, last + 1, RECORDS_A_PART)]
            write = partial(_written_or_told, partial(write_part, str(lake)))
            with telling_faults():
                made = context.parallelize(parts, len(parts)).map(write).collect()
            raise_first(fault for fault in made if isinstance(fault, str))
            table.append_files(made, last)
            if on_progress is not None:
                on_progress(last, log.end_offset)
        return log.end_offset - first


def _written_or_told(write: Callable[[tuple[int, int]], AddFile], part: tuple[int, int]) -> AddFile | str:
    """What a task gives: the file, or a fault of ours as data."""
    try:
        return write(part)
    except KraftlakeError as fault:
        return fault_to_json(fault)


def write_part(lake: str, part: tuple[int, int]) -> AddFile:
    """Write the rows of offsets [first, last] as a data file of `records/`, which is no part of the table yet."""
    first, last = part
    scan = RecordScan(source=lake, wanted=typed_schema(), first=first, last=last)
    rows = pa.concat_tables(read_part(scan, first, last))
    return LakeTable(RECORDS, lake_location(lake)).write_file(rows.cast(RECORDS.schema), last)


def _commits(log: MetadataLog, first: int) -> Iterator[tuple[int, int]]:
    """Ranges of offsets, both ends included, that begin and end with batches."""
    while first < log.end_offset:
        last = log.end_offset - 1
        after = first + _PARTS_A_COMMIT * RECORDS_A_PART
        if after <= last:
            base: int = log.rows(after, after, ["batch"]).column("batch")[0].as_py()
            last = base - 1 if base > first else last
        yield first, last
        first = last + 1
