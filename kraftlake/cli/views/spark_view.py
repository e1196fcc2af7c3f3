"""What a Spark job did."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.terminal import Terminal
from kraftlake.cli.theme import Style, paint
from kraftlake.cli.views.words import counted


def show_run(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Write what a run read and wrote."""
    heading = paint("replayed  ", Style.HEADING, colour=terminal.colour)
    if summary["offset"] <= summary["from"]:
        terminal.line(heading + paint("nothing: all was replayed before", Style.GOOD, colour=terminal.colour))
        return
    batches = counted(summary["batches"], "batch", "batches")
    deltas = counted(summary["deltas"], "metadata delta")
    terminal.line(f"{heading}offsets {summary['from'] + 1} to {summary['offset']}: {batches}, {deltas}")
    wrote = [f"{counted(rows, 'row')} of {table}/" for table, rows in summary["rows"].items()]
    if summary["snapshots"]:
        wrote.append(counted(len(summary["snapshots"]), "snapshot"))
    terminal.line(paint("wrote     ", Style.HEADING, colour=terminal.colour) + ", ".join(wrote))
