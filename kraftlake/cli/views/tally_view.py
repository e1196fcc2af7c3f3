"""Counts of records or events as a table, also in place of more lines than a terminal has use for."""

from __future__ import annotations

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import NONE, moment
from kraftlake.cli.selection.tally import Tally
from kraftlake.runtime.words import counted


def show_tally(terminal: Terminal, tally: Tally, noun: str) -> None:
    """Write the number of lines, each a `noun`, their range, and a row for each count."""
    terminal.line((counted(tally.total, noun), Style.STRONG), _range(tally))
    if not tally.total:
        return
    rows = table(tally.by, f"{noun}s", right=[f"{noun}s"], whole=tally.by)
    for key, count in tally.ranked():
        name = NONE if key is None else moment(key) if tally.by == "minute" else str(key)
        rows.add_row(text((name, Style.NAME)), text(f"{count:,}"))
    terminal.render(text(), rows)


def show_flood(terminal: Terminal, tally: Tally, noun: str, narrower: str) -> None:
    """Write the counts in place of the lines, and the options that show lines; `narrower` names those that select."""
    show_tally(terminal, tally, noun)
    terminal.line()
    terminal.line(
        (f"--all shows each {noun}, --limit 50 the first, --tail 50 the last; {narrower} select", Style.QUIET)
    )


def _range(tally: Tally) -> str:
    """` of the offsets 0 to 458, 2026-11-21 07:45:27.235Z to 2026-11-21 07:46:16.256Z`."""
    if tally.offsets is None:
        return ""
    times = "" if tally.times is None else f", {moment(tally.times[0])} to {moment(tally.times[1])}"
    return f" of the offsets {tally.offsets[0]} to {tally.offsets[1]}{times}"
