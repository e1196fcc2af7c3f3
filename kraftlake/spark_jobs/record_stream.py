"""The stream of records of the source `kraft`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.spark_jobs.lake_stream import Position
from kraftlake.spark_jobs.log_stream import LogStream
from kraftlake.spark_jobs.scan_parts import read_scan, scan_parts
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.source_options import SourceOptions
from kraftlake.spark_jobs.spark_versions import arrow_schema
from kraftlake.tables.record_scan import RecordScan, parts_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RecordStream(LogStream):
    """Streams the records of a lake's log."""

    def __init__(self, asked: SourceOptions, schema: StructType) -> None:
        super().__init__(asked)
        self._schema = schema

    @property
    def _scan(self) -> RecordScan:
        return self._asked.scan(arrow_schema(self._schema), 0, -1)

    def _check(self) -> None:
        super()._check()
        self._scan  # noqa: B018 - raises for a column that there is not

    @in_one_sentence()
    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        """The parts of a step, which after a restart may have been planned before it."""
        scan = attrs.evolve(self._scan, log_id=self._log.table_id)
        source = LogSource(LakeReader(self._log), SourceKind.LAKE, self._asked.path, self._log.cluster_id)
        return scan_parts(scan, parts_of(source, self._checked(start), self._checked(end) - 1))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a part."""
        return read_scan(partition)
