"""A source that answers questions in SQL over its derived tables, and such an answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kraftlake.api.measured_source import MeasuredSource
from kraftlake.runtime.arguments import text, whole
from kraftlake.runtime.extras import require
from kraftlake.runtime.html import html_table
from kraftlake.runtime.moments import iso

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.replay.reading.progress import Progress
    from kraftlake.tables.sql.asked import Asked


class SqlRows:
    """The rows of an answer: iteration yields them as tuples of JSON values, times as ISO 8601; `to_table` is Arrow.

    `is_cut` where the answer has more rows than the limit. `covered` has the last offset that each table of the
    question covers.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.is_cut = asked.answer.is_cut
        self.covered = asked.covered

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.to_table().schema.names)

    def to_table(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._asked.answer.rows

    def __len__(self) -> int:
        return int(self.to_table().num_rows)

    def __repr__(self) -> str:
        return f"<SqlRows {len(self)} of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        return html_table([tuple(map(str, row)) for row in self], header=self.columns, caption=f"{len(self)} rows")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.to_table().to_batches(max_chunksize=1_000):
            columns = [column.to_pylist() for column in batch.columns]
            yield from (tuple(map(_plain, row)) for row in zip(*columns, strict=True))


class SqlSource(MeasuredSource):
    """A source that answers questions in SQL."""

    def sql(
        self,
        question: str,
        *,
        limit: int = 1_000,
        seconds: float = 60.0,
        progress: Progress | None = None,
    ) -> SqlRows:
        """The answer to one SELECT in DuckDB's SQL over the derived tables: `kraftlake sql`.

        A lake's tables are as `kraftlake tables` left them; of another source those that the question names are made
        for the moment. The first `limit` rows are given. Raises UsageError where the question is refused or takes more
        than `seconds`, LakeError for a table that the lake lacks, EnvironmentFaultError without the package duckdb,
        and the errors of replaying a record.
        """
        require("duckdb", "Questions in SQL")
        from kraftlake.tables.sql.asked import ask
        from kraftlake.tables.sql.session import SqlLimits

        limits = SqlLimits(rows=whole(limit, "a number of rows", least=1), seconds=seconds)
        return SqlRows(ask(self, text(question, "a question"), limits, progress=progress))


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return iso(value) if value.tzinfo is not None else value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value) if isinstance(value, UUID) else value
