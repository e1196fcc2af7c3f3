"""The rows of an answer in SQL as a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.visible import visible

if TYPE_CHECKING:
    from kraftlake.api.sql import SqlRows

_NULL: Final = "NULL"


def show_rows(terminal: Terminal, answer: SqlRows) -> None:
    """Write the rows, numbers flushed right."""
    rows = [*answer]
    numbers = {
        name
        for place, name in enumerate(answer.columns)
        if any(row[place] is not None for row in rows) and all(_is_number(row[place]) for row in rows)
    }
    drawn = table(*map(visible, answer.columns), right=map(visible, numbers))
    for row in rows:
        drawn.add_row(*[text((_NULL, Style.QUIET) if value is None else _cell(value)) for value in row])
    with terminal.paged():
        terminal.render(drawn)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    return visible(value) if isinstance(value, str) else json.dumps(value)
