"""Parts of a scan, one for each task of Spark, of reads and of streams, and the reader of a read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kraftlake.metadata_log.storage.object_path import is_object_uri
from kraftlake.spark_jobs.executor_environment import lend, store_access
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.tables.record_scan import RecordScan, read_part


@attrs.frozen
class ScanPart(InputPartition):  # type: ignore[misc] # pyspark has no types here
    """The scan of a task's offsets, and the driver's access to the object store that holds them.

    The access is sent along, as sessions that others made do not have it.
    """

    scan: RecordScan
    access: Mapping[str, str] = attrs.field(repr=False)


def scan_parts(scan: RecordScan, ranges: Iterable[tuple[int, int]]) -> list[InputPartition]:
    """The parts of a scan that read the ranges of offsets [first, last]."""
    access = store_access() if is_object_uri(scan.source) else {}
    return [ScanPart(attrs.evolve(scan, first=first, last=last), access) for first, last in ranges]


def read_scan(part: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of a part, in offset order; none for the empty partition that Spark makes where there is no part."""
    if not isinstance(part, ScanPart):
        return
    lend(part.access, os.environ)
    with in_one_sentence():
        for table in read_part(part.scan):
            yield from table.to_batches()


class RecordReader(DataSourceReader):  # type: ignore[misc]
    """Reads a scan, one range of offsets in each task.

    It takes no filters from Spark: Spark 4.2 applies the filters that a Python source took for one use of a DataFrame
    to its other uses too, so that a join of two ranges of a log would silently lack rows.
    """

    def __init__(self, scan: RecordScan, ranges: list[tuple[int, int]]) -> None:
        self._scan = scan
        self._ranges = ranges

    def partitions(self) -> list[InputPartition]:
        """The ranges of the scan."""
        return scan_parts(self._scan, self._ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range; Spark gives an empty partition if there is none."""
        return read_scan(partition)
