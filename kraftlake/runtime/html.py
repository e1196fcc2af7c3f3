"""HTML tables for notebooks; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_LONGEST = 200


def html_table(rows: Iterable[Sequence[object]], *, caption: str, header: Sequence[str] = ()) -> str:
    """An HTML table of rows; without a `header` the first cell of each row is its heading. Long texts are cut."""
    head = f"<tr>{''.join(map(_heading, header))}</tr>" if header else ""
    body = "".join(f"<tr>{_cells(row, named=not header)}</tr>" for row in rows)
    return f"<table style='text-align: left'><caption>{_text(caption)}</caption>{head}{body}</table>"


def _cells(row: Sequence[object], *, named: bool) -> str:
    first = _heading(row[0]) if named else _cell(row[0])
    return first + "".join(map(_cell, row[1:]))


def _heading(value: object) -> str:
    return f"<th>{_text(value)}</th>"


def _cell(value: object) -> str:
    return f"<td>{_text(value)}</td>"


def _text(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
