"""Streams of the source `kraft` over a lake, in every release of Spark: Spark's offsets are the log's.

Spark starts a Python of its own for each stream, to plan its steps. This module and `log_stream` import what that needs
for a stream of offsets, which all jobs are; what decodes records is imported where records are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import are_addresses
from kraftlake.replay.reading.open_reader import LakeReader, open_reader
from kraftlake.runtime.errors import LakeError, OffsetError, UsageError
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.source_options import EARLIEST, LATEST, OFFSETS, SourceOptions
from kraftlake.spark_jobs.spark_versions import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kraftlake.tables.record_scan import RecordScan

Position = dict[str, Any]
"""The position of a stream, as Spark keeps it: `offset`, the next one to read, and `log`, the id of the log."""

_OFFSETS: Final = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("first", "last")])
"""The columns `OFFSETS_COLUMNS`: the first and the last offset of a step."""


class LakeStream(DataSourceStreamReader):  # type: ignore[misc] # pyspark has no types here
    """The stream of Spark 4.0 and 4.1, which do not limit the size of a step: its offsets alone, and a step takes all.

    Executors of a job divide a step themselves. Spark 4.2 has `LogStream`, whose positions and rows are the same.

    One process beside Spark's driver plans the steps for as long as the stream runs, and keeps the lake open; Spark
    copies the reader to tasks before that. An open lake follows compactions, and checks for a single file when nothing
    was appended.
    """

    def __init__(self, asked: SourceOptions, schema: StructType) -> None:
        self._asked = asked
        self._schema = schema

    def _check_columns(self) -> None:
        """Raise UsageError for columns that make no stream."""
        if self._asked.columns != OFFSETS:
            raise UsageError(f'streams of format("kraft") need Spark 4.2, and this is {pyspark.__version__}')

    @in_one_sentence()
    def initialOffset(self) -> Position:  # noqa: N802 - Spark's name
        """The start of a stream without a checkpoint; raises KraftSourceError for an offset that does not exist."""
        ends: dict[Any, int] = {EARLIEST: self._log.start_offset, LATEST: self._log.end_offset}
        position = self._position(ends.get(self._asked.starting, self._asked.starting))
        self._checked(position)
        return position

    @in_one_sentence()
    def latestOffset(self) -> Position:  # noqa: N802
        """The end of the log."""
        self._log.refresh()
        return self._position(self._log.end_offset)

    @in_one_sentence()
    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        """The parts of a step, which after a restart may have been planned before it."""
        first, last = self._checked(start), self._checked(end) - 1
        if self._asked.columns == OFFSETS:
            return [_Step(first, last)]
        from kraftlake.replay.queries.source import LogSource
        from kraftlake.spark_jobs.scan_parts import scan_parts
        from kraftlake.tables.record_scan import parts_of

        source = LogSource(LakeReader(self._log), SourceKind.LAKE, self._asked.path, self._log.cluster_id)
        return scan_parts(attrs.evolve(self._scan(), log_id=self._log.table_id), parts_of(source, first, last))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a part; of a step one row, its offsets."""
        if isinstance(partition, _Step):
            yield pa.RecordBatch.from_pylist([attrs.asdict(partition)], _OFFSETS)
            return
        from kraftlake.spark_jobs.scan_parts import read_scan

        yield from read_scan(partition)

    def _scan(self) -> RecordScan:
        return self._asked.scan(arrow_schema(self._schema), 0, -1)

    @cached_property
    def _log(self) -> MetadataLog:
        self._asked.check_stream()
        self._check_columns()
        path = self._asked.path
        if not are_addresses(path):
            reader, _ = open_reader(path)
            if isinstance(reader, LakeReader):
                return reader.log
        raise UsageError(
            f'format("kraft") streams lakes alone, and {path} is none: `kraftlake import {path} LAKE` makes one of it'
        )

    def _position(self, offset: Any) -> Position:
        return {"offset": offset, "log": self._log.table_id}

    def _checked(self, position: Position) -> int:
        """The offset of a position, after a check that it is one of this log."""
        log = self._log
        if position.get("log") != log.table_id:
            raise LakeError(
                f"the checkpoint of this stream is of another log than that of {log.path}: take a new checkpoint"
            )
        offset: int = position["offset"]
        if offset < log.start_offset:
            raise OffsetError(
                f"offset {offset}, the next one of this stream, was trimmed from {log.path}: the first one there is is "
                f"{log.start_offset}, from which a stream with a new checkpoint and no startingOffset starts"
            )
        if offset > log.end_offset:
            raise OffsetError(
                f"offset {offset}, the next one of this stream, is behind the end of {log.path}, {log.end_offset}: "
                "another state of the log is in its place, or startingOffset is too high"
            )
        return offset


@attrs.frozen
class _Step(InputPartition):  # type: ignore[misc]
    first: int
    last: int
