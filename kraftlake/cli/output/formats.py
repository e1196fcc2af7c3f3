"""The formats of an answer besides text: JSON, CSV and Markdown, line by line. Nothing in a value can break a line."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kraftlake.cli.output.visible import visible
from kraftlake.cli.output.words import moment

TEXT, JSON, CSV, MARKDOWN = FORMATS = ("text", "json", "csv", "markdown")
"""The values of `--output`; a new one also needs an entry in `_LINES`."""

Row = dict[str, Any]

_BARE: Final = re.compile(r"[\w.:/+@'<>()-]+( [\w.:/+@'<>()-]+)*|")
"""A cell of CSV that no spreadsheet divides: without any of the separators that one may use."""
_FORMULA: Final = "=+-@＝＋－＠"
_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")
"""The characters that Markdown or HTML in it would act on."""


class Table(NamedTuple):
    """An answer of rows, which may be written as they come; a row may lack columns."""

    columns: Sequence[str]
    rows: Iterable[Row]


def table_of(form: Row, format_: str) -> Table:
    """An answer of one object as a table: in CSV a row, in Markdown a row for each field."""
    if format_ == CSV:
        return Table(tuple(form), [form])
    return Table(("field", "value"), [{"field": name, "value": _dated(name, value)} for name, value in form.items()])


_FINITE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def json_text(value: Any) -> str:
    """A value as JSON, in ASCII, so that no string in it can steer a terminal.

    Numbers that JSON lacks are strings, as Kafka's tools print them: "NaN", "Infinity".
    """
    try:
        return _FINITE.encode(value)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"))


def _finite(value: Any) -> Any:
    """The value with every number that JSON lacks as a string."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain(value: Any) -> str:
    """A cell: text as it is but for control characters, nothing for null, all else as JSON."""
    if isinstance(value, str):
        return visible(value)
    return "" if value is None else json_text(value)


def _csv_cell(value: Any) -> str:
    """A cell of CSV; a text that a spreadsheet would calculate begins with an apostrophe."""
    text = _plain(value)
    if isinstance(value, str) and text[:1] in _FORMULA and text and not re.fullmatch(r"[+-]\d+", text):
        text = f"'{text}"
    return text if _BARE.fullmatch(text) else f'"{text.replace(chr(34), chr(34) * 2)}"'


def _csv_line(cells: Iterable[tuple[str, Any]]) -> str:
    return ",".join([_csv_cell(value) for _, value in cells]) + "\n"


def markdown_text(text: str) -> str:
    """Text within Markdown, with its marks escaped."""
    return _MARKS.sub(r"\\\1", visible(text))


def _dated(name: str, value: Any) -> Any:
    """A value of the field or column `name`, with milliseconds since 1970 as a time: Markdown is for people."""
    return moment(value) if isinstance(value, int) and name.lower().endswith("timestamp") else value


def _markdown_cell(column: str, value: Any) -> str:
    return markdown_text(_plain(_dated(column, value)))


def _markdown_line(cells: Iterable[tuple[str, Any]]) -> str:
    return f"| {' | '.join([_markdown_cell(column, value) for column, value in cells])} |\n"


class _Lines(NamedTuple):
    """The line of a row, and what stands before the first one."""

    of_row: Callable[[Sequence[str], Row], str]
    head: Callable[[Sequence[str]], str]


def _cells(columns: Sequence[str], row: Row) -> Iterable[tuple[str, Any]]:
    return [(column, row.get(column)) for column in columns]


_LINES: Final[Mapping[str, _Lines]] = {
    JSON: _Lines(lambda _, row: f"{json_text(row)}\n", lambda _: ""),
    CSV: _Lines(
        lambda columns, row: _csv_line(_cells(columns, row)),
        lambda columns: _csv_line((name, name) for name in columns),
    ),
    MARKDOWN: _Lines(
        lambda columns, row: _markdown_line(_cells(columns, row)),
        lambda columns: _markdown_line(("", name) for name in columns) + "| --- " * len(columns) + "|\n",
    ),
}


class RowWriter:
    """Writes rows to stdout as they come, in a format that is not text."""

    def __init__(self, format_: str) -> None:
        self._lines = _LINES[format_]
        self._columns: Sequence[str] | None = None

    def begin(self, columns: Sequence[str]) -> None:
        """Write what stands before the first row."""
        self._columns = columns
        sys.stdout.write(self._lines.head(columns))

    def write(self, row: Row) -> None:
        """Write the line of a row, of which the first one has all columns if none were named."""
        if self._columns is None:
            self.begin(tuple(row))
        sys.stdout.write(self._lines.of_row(self._columns or (), row))

    def write_table(self, table: Table) -> None:
        """Write rows as they come; the columns also where there are none."""
        for row in table.rows:
            if self._columns is None:
                self.begin(table.columns)
            self.write(row)
        if self._columns is None:
            self.begin(table.columns)
