"""Progress of long work as bars on stderr; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kraftlake.cli.output.terminal import Terminal

Progress = Callable[[str, int, int], None]
"""A callback with a phase, its number of offsets (or lakes) that are done, and their total."""

PATIENCE_SECONDS = 1.0
"""The time before a bar is drawn."""

_BETWEEN_SECONDS = 0.1

_TITLES = {
    "checking": "Checking what the log holds",
    "writing": "Appending to the lake",
    "starting": "Starting",
    "folding": "Folding on Spark",
    "replaying": "Replaying",
    "loading": "Loading a snapshot",
    "generating": "Making up",
    "lakes": "Lake by lake on Spark",
}


@contextmanager
def progress_bars(terminal: Terminal) -> Iterator[Progress]:
    """A function that draws a bar for each phase; the bars are erased when the context ends."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns: list[Any] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
    ]
    tasks: dict[str, TaskID] = {}
    totals: dict[str, int] = {}
    with Bars(*columns, console=terminal.console(sys.stderr), transient=True) as bars:

        def progress(phase: str, done: int, total: int) -> None:
            count = f"{done:,} of {total:,} {_unit(phase)}" if total else ""
            if phase not in tasks:
                for done_before, task in tasks.items():
                    all_of_it = f"{totals[done_before]:,} {_unit(done_before)}" if totals[done_before] else ""
                    bars.update(task, total=1, completed=1, count=all_of_it)
                tasks[phase] = bars.add_task(_TITLES.get(phase, phase), total=None, count=count)
            totals[phase] = total
            bars.update(tasks[phase], total=total or None, completed=done, count=count)

        yield progress


def _unit(phase: str) -> str:
    return "lakes" if phase == "lakes" else "offsets"


@contextmanager
def late_progress_bars(terminal: Terminal, clock: Callable[[], float] = time.monotonic) -> Iterator[Progress | None]:
    """The same as `progress_bars` for work that is rarely long: the first second draws and imports nothing.

    None where stderr is no terminal, so that callers need not count.
    """
    if not sys.stderr.isatty():
        yield None
        return
    due: float | None = None
    bars: Progress | None = None
    with ExitStack() as stack:

        def progress(phase: str, done: int, total: int) -> None:
            nonlocal bars, due
            now = clock()
            due = now + PATIENCE_SECONDS if due is None else due
            if now < due:
                return
            due = now + _BETWEEN_SECONDS
            if bars is None:
                bars = stack.enter_context(progress_bars(terminal))
            bars(phase, done, total)

        yield progress
