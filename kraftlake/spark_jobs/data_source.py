"""The Spark data source `kraft`: typed records of a lake, a Kafka metadata directory, a file or an archive as rows.

    spark.dataSource.register(KraftDataSource)
    spark.read.format("kraft").option("type", "PartitionRecord").load("SOURCE")
    spark.readStream.format("kraft").option("type", "PartitionRecord").load("LAKE")

`spark_session` and `registered` register it. Tasks read in parallel and return Arrow batches; the options and the
reader's schema select the columns to decode. Spark starts Pythons that import this module, to find it and to plan
streams and reads: what reads and decodes records is imported where records are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from kraftlake.runtime.errors import UsageError
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.source_options import OFFSETS, OFFSETS_COLUMNS, SourceOptions
from kraftlake.spark_jobs.spark_versions import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kraftlake.metadata_log.storage.location import Location

if find_spec("pyarrow") is None:  # the next Python, which plans a stream, would end without giving Spark the reason
    raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

FORMAT: Final = "kraft"


class KraftDataSource(DataSource):  # type: ignore[misc] # pyspark has no types here
    """`format("kraft")` of reads and streams; see docs/records-sql.md and docs/spark-jobs.md."""

    @in_one_sentence()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._options = SourceOptions.of(options)

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    @in_one_sentence()
    def schema(self) -> StructType | str:
        """The columns of a reader that names none."""
        asked = self._options
        if asked.columns == OFFSETS:
            return OFFSETS_COLUMNS
        from pyspark.sql.pandas.types import from_arrow_schema

        from kraftlake.tables.record_scan import open_scanned

        open_scanned(asked.path, asked.first, asked.last)  # raises when the source is loaded, not when it is read
        return from_arrow_schema(asked.schema)

    @in_one_sentence()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`, which may be some of the source's."""
        asked = self._options
        asked.check_read()
        from kraftlake.spark_jobs.scan_parts import RecordReader
        from kraftlake.tables.record_scan import open_scanned, parts_of

        source, first, last = open_scanned(asked.path, asked.first, asked.last)
        scan = asked.scan(arrow_schema(schema), first, last)
        return RecordReader(scan, parts_of(source, first, last))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A stream of the columns of `schema`. It raises its errors itself: Spark would lose those raised here."""
        if find_spec("pyspark.sql.streaming.datasource") is None:
            from kraftlake.spark_jobs.lake_stream import LakeStream

            return LakeStream(self._options, schema)
        from kraftlake.spark_jobs.log_stream import LogStream

        return LogStream(self._options, schema)

    @in_one_sentence()
    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """Raise the error that the source can't be written."""
        raise UsageError('format("kraft") only reads: `kraftlake import` and `kraftlake fork` make lakes')


def registered(spark: SparkSession) -> SparkSession:
    """The session, which knows the source, and whose process that plans it has the access to the lake's store."""
    from pyspark.errors import AnalysisException

    from kraftlake.spark_jobs.tasks import lend_access, live

    lend_access(live(spark))
    try:
        spark.dataSource.register(KraftDataSource)
    except AnalysisException as fault:  # Spark 4.0 refuses a source that it has found itself, in `pyspark_kraft`
        if fault.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    return spark


def kraft_stream(spark: SparkSession, lake: Location, options: Mapping[str, Any]) -> DataFrame:
    """A stream of a lake."""
    return registered(spark).readStream.format(FORMAT).options(**options).load(str(lake))
