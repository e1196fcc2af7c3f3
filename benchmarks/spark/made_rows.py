"""A Python data source that gives rows which were made before: what Spark itself takes to have rows from Python.

Its path is a file of Arrow batches; option `rows` says how many rows it gives of them, again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


class MadeRows(DataSource):  # type: ignore[misc] # pyspark has no types here
    """`spark.read.format("made").option("rows", N).load(FILE)`."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "made"

    def schema(self) -> StructType:
        """The file's."""
        with pa.OSFile(self.options["path"]) as file:
            return from_arrow_schema(pa.ipc.open_file(file).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads all of it."""
        return MadeRowsReader(self.options["path"], int(self.options["rows"]))


class MadeRowsReader(DataSourceReader):  # type: ignore[misc]
    """One task."""

    def __init__(self, path: str, rows: int) -> None:
        self._path = path
        self._rows = rows

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches in turn, until there were so many rows."""
        with pa.OSFile(self._path) as file:
            reader = pa.ipc.open_file(file)
            batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        left = self._rows
        while left > 0:
            for batch in batches:
                yield batch.slice(0, left)
                left -= batch.num_rows
                if left <= 0:
                    return


def made_rows(spark: SparkSession, batches: list[pa.RecordBatch], rows: int, path: Path) -> DataFrame:
    """So many rows of the batches, which are put into the file."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    spark.dataSource.register(MadeRows)
    return spark.read.format("made").option("rows", rows).load(str(path))
