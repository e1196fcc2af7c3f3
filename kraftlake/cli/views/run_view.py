"""What a run over a lake's tables did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftlake.cli.terminal import Terminal
from kraftlake.cli.theme import Style, paint
from kraftlake.cli.views.words import counted

if TYPE_CHECKING:
    from kraftlake.spark_jobs import BuiltSnapshot


def show_run(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Write what a run read and wrote."""
    heading = paint("replayed  ", Style.HEADING, colour=terminal.colour)
    if summary["offset"] <= summary["from"]:
        terminal.line(heading + paint("nothing: all was replayed before", Style.GOOD, colour=terminal.colour))
        return
    taken = [counted(summary["batches"], "batch", "batches")]
    if summary["deltas"]:
        taken.append(counted(summary["deltas"], "metadata delta"))
    terminal.line(f"{heading}offsets {summary['firstOffset']} to {summary['offset']}: {', '.join(taken)}")
    rows: dict[str, int] = summary["rows"]
    width = max(len(table) for table in rows) + 1 if rows else 0
    still_so: dict[str, int] = summary["openRows"]
    wrote = [f"{table + '/':{width}}  {_rows(count, still_so.get(table))}" for table, count in rows.items()]
    if summary["snapshots"]:
        wrote.append(f"{'snapshots/':{width}}  {len(summary['snapshots']):,}")
    for number, line in enumerate(wrote):
        label = "" if number else "wrote"
        terminal.line(paint(f"{label:10}", Style.HEADING, colour=terminal.colour) + line)


def _rows(count: int, still_so: int | None) -> str:
    """The rows of a table; one of states keeps those that are still so beside those that ended in this run."""
    if still_so is None:
        return counted(count, "row")
    return f"{counted(count, 'state')} ended, {still_so:,} still so"


def show_snapshot(terminal: Terminal, built: BuiltSnapshot) -> None:
    """Write which snapshot the lake has now."""
    colour = terminal.colour
    if not built.written:
        terminal.line(paint("snapshot  ", Style.HEADING, colour=colour) + f"{built.name} was there already")
        return
    terminal.line(paint("folded    ", Style.HEADING, colour=colour) + f"{_from(built.base)} to offset {built.offset}")
    held = f"{counted(built.topics or 0, 'topic')}, {counted(built.partitions or 0, 'partition')}"
    terminal.line(paint("wrote     ", Style.HEADING, colour=colour) + f"{built.name}: {held}")


def _from(base: str | None) -> str:
    return "the log from its start" if base is None else f"from {base}"
