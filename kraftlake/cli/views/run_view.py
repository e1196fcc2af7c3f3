"""What a run over a lake's tables did."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import counted


def show_run(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Write what a run read and wrote."""
    heading = ("replayed  ", Style.HEADING)
    if summary["offset"] <= summary["from"]:
        terminal.line(heading, ("nothing: all was replayed before", Style.GOOD))
        return
    taken = [counted(summary["batches"], "batch", "batches")]
    if summary["deltas"]:
        taken.append(counted(summary["deltas"], "metadata delta"))
    terminal.line(heading, f"offsets {summary['firstOffset']} to {summary['offset']}: {', '.join(taken)}")
    rows: dict[str, int] = summary["rows"]
    width = max(len(table) for table in rows) + 1 if rows else 0
    still_so: dict[str, int] = summary["openRows"]
    wrote = [f"{table + '/':{width}}  {_rows(count, still_so.get(table))}" for table, count in rows.items()]
    if summary["snapshots"]:
        wrote.append(f"{'snapshots/':{width}}  {len(summary['snapshots']):,}")
    for number, line in enumerate(wrote):
        terminal.line((f"{'' if number else 'wrote':10}", Style.HEADING), line)


def _rows(count: int, still_so: int | None) -> str:
    """The rows of a table; one of states keeps those that are still so beside those that ended in this run."""
    if still_so is None:
        return counted(count, "row")
    return f"{counted(count, 'state')} ended, {still_so:,} still so"


def show_snapshot(terminal: Terminal, built: dict[str, Any]) -> None:
    """Write which snapshot the lake has now."""
    if not built["written"]:
        terminal.line(("snapshot  ", Style.HEADING), f"{built['name']} was there already")
        return
    begin = "the log from its start" if built["from"] is None else f"from {built['from']}"
    terminal.line(("folded    ", Style.HEADING), f"{begin} to offset {built['offset']}")
    held = f"{counted(built['topics'] or 0, 'topic')}, {counted(built['partitions'] or 0, 'partition')}"
    terminal.line(("wrote     ", Style.HEADING), f"{built['name']}: {held}")
