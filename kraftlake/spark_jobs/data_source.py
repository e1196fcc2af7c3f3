"""The Spark data source `kraft`: typed records of a lake, a Kafka metadata directory, a file or an archive as rows.

    spark.dataSource.register(KraftDataSource)
    spark.read.format("kraft").option("type", "PartitionRecord").load("SOURCE")
    spark.readStream.format("kraft").option("type", "PartitionRecord").load("LAKE")

`spark_session` registers it. Tasks read in parallel and return Arrow batches; the options and the reader's schema
select the columns to decode.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema

from kraftlake.runtime.errors import KraftlakeError, UsageError
from kraftlake.spark_jobs.scan_parts import read_scan, scan_parts
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.source_options import OFFSETS, SourceOptions
from kraftlake.spark_jobs.spark_versions import arrow_schema
from kraftlake.tables.record_scan import RecordScan, open_scanned, parts_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kraftlake.spark_jobs.lake_stream import LakeStream

FORMAT: Final = "kraft"


class KraftDataSource(DataSource):  # type: ignore[misc] # pyspark has no types here
    """`format("kraft")` of reads and streams; see docs/records-sql.md and docs/spark-jobs.md."""

    @in_one_sentence
    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._options = SourceOptions.of(options)

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    @in_one_sentence
    def schema(self) -> StructType:
        """The columns of a reader that names none."""
        asked = self._options
        open_scanned(asked.path, asked.first, asked.last)  # raises when the source is loaded, not when it is read
        return from_arrow_schema(asked.schema)

    @in_one_sentence
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`, which may be some of the source's."""
        asked = self._options
        asked.check_read()
        source, first, last = open_scanned(asked.path, asked.first, asked.last)
        scan = asked.scan(arrow_schema(schema), first, last)
        return RecordReader(scan, parts_of(source, first, last))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A stream of the columns of `schema`. Spark would lose an error that is raised here."""
        asked = self._options
        try:
            asked.check_stream()
            scan = asked.scan(arrow_schema(schema), 0, -1)
            stream = _stream_class(asked)
        except KraftlakeError as fault:
            return RefusedStream(fault)
        return stream(scan, asked.starting, asked.max_records)

    @in_one_sentence
    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """Raise the error that the source can't be written."""
        raise UsageError('format("kraft") only reads: `kraftlake import` and `kraftlake fork` make lakes')


def _stream_class(asked: SourceOptions) -> type[LakeStream]:
    """The stream for the requested columns; raises UsageError if this Spark has none."""
    if find_spec("pyspark.sql.streaming.datasource") is not None:
        from kraftlake.spark_jobs.log_stream import LogStream, OffsetStream

        return OffsetStream if asked.columns == OFFSETS else LogStream
    if asked.columns == OFFSETS:
        from kraftlake.spark_jobs.lake_stream import UnboundedOffsets

        return UnboundedOffsets
    raise UsageError(f'streams of format("kraft") need Spark 4.2, and this is {pyspark.__version__}')


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


class RefusedStream(DataSourceStreamReader):  # type: ignore[misc]
    """Raises the reason why there is no stream, at any call by Spark."""

    def __init__(self, fault: KraftlakeError) -> None:
        self._fault = fault

    @in_one_sentence
    def initialOffset(self, *_: object) -> NoReturn:  # noqa: N802 - Spark's names
        """Raises KraftSourceError, always."""
        raise self._fault

    latestOffset = getDefaultReadLimit = partitions = initialOffset  # noqa: N815

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises KraftSourceError, as `initialOffset`."""
        self.initialOffset(partition)
