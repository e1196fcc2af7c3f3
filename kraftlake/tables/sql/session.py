"""One question in SQL, answered by DuckDB, which sees the tables that it is given and nothing else.

The database lies in memory and opens no file, its settings are locked, and a question is one statement that only reads.
DuckDB is imported here alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs
import duckdb
import pyarrow as pa

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import in_words

DEFAULT_ROWS: Final = 1_000
DEFAULT_SECONDS: Final = 60.0

_SETTINGS: Final = (
    "memory_limit = '1GB'",
    "temp_directory = ''",
    "threads = 2",
    "TimeZone = 'UTC'",
    "default_null_order = 'nulls_first_on_asc_last_on_desc'",  # as Spark's
    "secret_directory = ''",
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "enable_external_access = false",
)
_MACROS: Final = (
    "size(list) AS len(list)",
    "get(list, index) AS list[index + 1]",
    "array_except(list, others) AS list_filter(list, lambda x: NOT list_contains(others, x))",
    "unix_millis(time) AS epoch_ms(time)",
)
"""Functions of Spark by their names there, so that a question reads the same in both."""


@attrs.frozen(kw_only=True)
class SqlLimits:
    """The limits of an answer: the rows of its table, and the seconds that it may take."""

    rows: int = DEFAULT_ROWS
    seconds: float = DEFAULT_SECONDS


@attrs.frozen(kw_only=True)
class SqlAnswer:
    """The rows of an answer; `is_cut` where there are more than the limit."""

    rows: pa.Table
    is_cut: bool


def asked_tables(question: str) -> frozenset[str]:
    """The names of the tables in a question, in lower case; UsageError unless it is one statement that only reads."""
    with _session() as connection:
        with _one_sentence():
            statements = connection.extract_statements(question)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError("The question is not one SELECT: SQL reads the tables here, and nothing else.")
        with _one_sentence():
            return frozenset(name.lower() for name in connection.get_table_names(question))


def answer(question: str, tables: Mapping[str, Any], limits: SqlLimits) -> SqlAnswer:
    """Answer a question over Arrow tables or datasets by their names.

    Raises UsageError, with DuckDB's words, for a question that has no answer or takes longer than it may.
    """
    asked_tables(question)
    with _session() as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        connection.execute("SET lock_configuration = true")
        timer = threading.Timer(limits.seconds, connection.interrupt)
        timer.start()
        try:
            with _one_sentence(limits):
                rows = connection.sql(question).limit(limits.rows + 1).to_arrow_table()
        finally:
            timer.cancel()
    return SqlAnswer(rows=rows.slice(0, limits.rows), is_cut=rows.num_rows > limits.rows)


@contextmanager
def _session() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    try:
        for macro in _MACROS:
            connection.execute(f"CREATE MACRO {macro}")
        for setting in _SETTINGS:
            connection.execute(f"SET {setting}")
        yield connection
    finally:
        connection.close()


@contextmanager
def _one_sentence(limits: SqlLimits | None = None) -> Iterator[None]:
    """Raise a fault of DuckDB as one sentence, without the lines that draw the question."""
    try:
        yield
    except duckdb.InterruptException:
        seconds = 0 if limits is None else limits.seconds
        raise UsageError(f"The question has no answer within {seconds:g} s: ask for less, or give it longer.") from None
    except (duckdb.Error, pa.ArrowException) as fault:
        message = str(fault).partition("\n\nLINE ")[0]
        raise UsageError(f"DuckDB refuses the question: {' '.join(message.split()).rstrip('.')}.") from None


def no_such_table(names: frozenset[str], known: tuple[str, ...]) -> UsageError:
    """The error of a question about tables that are not there."""
    return UsageError(f"There is no table {in_words(sorted(names))}: there are {', '.join(known)}.")
