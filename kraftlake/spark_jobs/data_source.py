"""The Spark data source `kraft`: typed records of a lake, a Kafka metadata directory, a file or an archive as rows.

    spark.dataSource.register(KraftDataSource)
    spark.read.format("kraft").option("type", "PartitionRecord").load("SOURCE")

`spark_session` registers it. Tasks read in parallel and return Arrow batches; the options and the reader's schema
choose what is decoded.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import attrs
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from kraftlake.records.typed_rows import checked_schema, typed_schema
from kraftlake.runtime.errors import KraftlakeError, UsageError
from kraftlake.spark_jobs.record_scan import RecordScan, open_scanned, parts_of, read_part, type_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT: Final = "kraft"
_OPTIONS: Final = ("startOffset", "endOffset", "type", "showSecrets")

F = TypeVar("F", bound=Callable[..., Any])


class KraftSourceError(Exception):
    """The error of a read in one sentence, which Spark shows as the error of the query."""


def in_one_sentence(function: F) -> F:
    """Raise kraftlake's errors as KraftSourceError, without the traceback that Spark would print."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KraftlakeError as fault:
            if _in_spark_worker():  # this process ends with the error, and the setting with it
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise KraftSourceError(str(fault)) from None

    return wrapped  # type: ignore[return-value]


class KraftDataSource(DataSource):  # type: ignore[misc] # pyspark has no types here
    """`spark.read.format("kraft")`; see docs/spark-jobs.md for its options and columns."""

    @in_one_sentence
    def __init__(self, options: MutableMapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        path = given.pop("path", None)
        if not path or "paths" in given:
            raise UsageError('format("kraft") reads one source: load("SOURCE")')
        known = {name.lower(): name for name in _OPTIONS}
        for name in given.keys() - known.keys():
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(_OPTIONS)}"
            raise UsageError(f'format("kraft") has no option {name}: {hint}')
        # Executors have other working directories.
        self._path = path if "://" in path else str(os.path.abspath(path))  # noqa: PTH100 - of a text
        self._only = type_of(given.get("type"))
        self._first = _offset_of("startOffset", given.get("startoffset"))
        self._last = _offset_of("endOffset", given.get("endoffset"))
        self._show_secrets = _bool_of("showSecrets", given.get("showsecrets"))

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    @in_one_sentence
    def schema(self) -> StructType:
        """The columns of a reader that names none."""
        open_scanned(self._path, self._first, self._last)  # raises when the source is loaded, not when it is read
        return from_arrow_schema(typed_schema(self._only))

    @in_one_sentence
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`, which may be some of the source's."""
        wanted = checked_schema(to_arrow_schema(schema, timezone="UTC"), self._only)
        source, first, last = open_scanned(self._path, self._first, self._last)
        return RecordReader(
            RecordScan(
                source=self._path,
                wanted=wanted,
                only=self._only,
                first=first,
                last=last,
                show_secrets=self._show_secrets,
            ),
            parts_of(source, first, last),
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002 - Spark's names
        """A reader that raises the error that this source has no stream: a lake's Delta table has."""
        return NoStreamReader()

    @in_one_sentence
    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002
        """Raise the error that the source can't be written."""
        raise UsageError('format("kraft") only reads: `kraftlake import` and `kraftlake fork` make lakes')


@attrs.frozen
class _Part(InputPartition):  # type: ignore[misc]
    first: int
    last: int


class RecordReader(DataSourceReader):  # type: ignore[misc]
    """Reads a scan, one range of offsets in each task.

    It takes no filters from Spark: Spark 4.2 applies the filters that a Python source took for one use of a DataFrame
    to its other uses too, so that a join of two ranges of a log would silently lack rows.
    """

    def __init__(self, scan: RecordScan, parts: list[tuple[int, int]]) -> None:
        self._scan = scan
        self._parts = parts

    def partitions(self) -> list[InputPartition]:
        """The ranges of the scan."""
        return [_Part(first, last) for first, last in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range; Spark gives an empty partition if there is none."""
        if isinstance(partition, _Part):
            yield from _batches(self._scan, partition)


class NoStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Raises the error that there is no stream; Spark would lose an error that `streamReader` raised."""

    @in_one_sentence
    def initialOffset(self) -> NoReturn:  # noqa: N802 - Spark's name
        """Raises KraftSourceError, always."""
        raise UsageError(
            'format("kraft") is read at once: to stream, import the log into a lake and stream its table, '
            'spark.readStream.format("delta").load("LAKE/log"), or run a job of `kraftlake spark`'
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """As `initialOffset`."""
        self.initialOffset()


def _batches(scan: RecordScan, part: _Part) -> Iterator[pa.RecordBatch]:
    tables = read_part(scan, part.first, part.last)
    while True:
        table = in_one_sentence(next)(tables, None)
        if table is None:
            return
        yield from table.to_batches()


def _offset_of(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}", text):
        raise UsageError(f"the option {option} is an offset, not {text!r}")
    return int(text)


def _bool_of(option: str, text: str | None) -> bool:
    if text is not None and text.lower() not in ("true", "false"):
        raise UsageError(f"the option {option} is true or false, not {text!r}")
    return text is not None and text.lower() == "true"


def _in_spark_worker() -> bool:
    """Whether this process is a Python worker of Spark, or a fork of the daemon that starts workers."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
