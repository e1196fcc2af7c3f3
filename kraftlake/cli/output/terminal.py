"""The output of a command: answers on stdout, warnings on stderr, colours."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, TextIO

from kraftlake.cli.output.theme import Piece, Style, painted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPED_WIDTH = 160
_LINE_END = re.compile(r"(?:\x1b\[[0-9;]*m| )+$", re.MULTILINE)
"""Blanks and colour codes after the last word of a line."""
_NARROWEST = 40


class Terminal:
    """The two output streams of a command.

    `colour` says whether stdout gets ANSI codes, `interactive` whether it is a terminal, `width` is that of a line, in
    cells. Long answers go through the command `pager`, None for none. Streams are looked up when they are used, so that
    redirection in tests works.
    """

    def __init__(self, colour: str = "auto") -> None:
        self.pager: list[str] | None = None
        self.interactive = _is_terminal(sys.stdout)
        self.colour = wants_colour(colour, sys.stdout)
        self.error_colour = wants_colour(colour, sys.stderr)
        self.measure()

    def measure(self) -> None:
        """Measure the width again: a terminal may have been resized."""
        columns = os.environ.get("COLUMNS", "")
        if self.interactive or columns.isdecimal():
            self.width = max(_NARROWEST, _screen().columns)
        else:
            self.width = PIPED_WIDTH

    def line(self, *pieces: Piece) -> None:
        """Write one line of the answer, its pieces painted where stdout has colours."""
        sys.stdout.write(painted(*pieces, colour=self.colour) + "\n")

    def fact(self, heading: str, *pieces: Piece, width: int = 10) -> None:
        """Write a line that a heading begins, in a column of its own."""
        self.line((f"{heading:<{width}}", Style.HEADING), *pieces)

    def lines(self, lines: Iterable[Sequence[Piece]]) -> None:
        """Write lines as they arrive, through the pager where they do not fit on the screen."""
        coming = iter(lines)
        held = [] if self.pager is None else list(islice(coming, _screen().lines))
        is_long = self.pager is not None and len(held) == _screen().lines
        with self.paged() if is_long else nullcontext():
            for pieces in chain(held, coming):
                self.line(*pieces)

    def warn(self, text: str) -> None:
        """Write a warning on stderr."""
        sys.stderr.write(painted(("warning:", Style.WARNING), f" {text}", colour=self.error_colour) + "\n")

    def note(self, text: str) -> None:
        """Write a note on stderr: how an input was understood."""
        sys.stderr.write(painted(("note:", Style.NAME), f" {text}", colour=self.error_colour) + "\n")

    def render(self, *renderables: RenderableType) -> None:
        """Draw rich renderables on stdout, without the blanks that rich fills lines up with."""
        self.text("".join(map(self._drawn, renderables)))

    def text(self, text: str) -> None:
        """Write text that is safe to show and already painted, through the pager where it exceeds the screen."""
        is_long = self.pager is not None and text.count("\n") >= _screen().lines
        with self.paged() if is_long else nullcontext():
            sys.stdout.write(text)

    def _drawn(self, renderable: RenderableType) -> str:
        from rich.tree import Tree

        from kraftlake.cli.output.tree_lines import tree_lines

        console = self.console(sys.stdout)
        if isinstance(renderable, Tree) and not console.options.ascii_only:
            drawn = "\n".join([*tree_lines(renderable, console), ""])
        else:
            # rich's own writing would end the process where the reader of stdout went away; a fault ends it in our way
            with console.capture() as captured:
                console.print(renderable)
            drawn = captured.get()
        return _LINE_END.sub(lambda end: end.group().replace(" ", ""), drawn)

    def paged(self) -> AbstractContextManager[None]:
        """Show the output of the context in the pager, if there is one."""
        if self.pager is None:
            return nullcontext()
        from kraftlake.cli.output.pager import written_to

        return written_to(self.pager)

    def console(self, stream: TextIO) -> Console:
        """A rich console over `stream`, without markup, emoji codes and highlighting: its strings are untrusted."""
        from rich.console import Console

        colour = self.colour if stream is sys.stdout else self.error_colour
        return Console(
            file=stream,
            force_terminal=colour,
            color_system="standard" if colour else None,
            width=self.width,
            highlight=False,
            markup=False,
            emoji=False,
        )


def check_reader() -> None:
    """Raise BrokenPipeError where the reader of stdout has gone, which otherwise only the next write would show."""
    try:
        stdout = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # no file, as in tests
        return
    polled = select.poll()
    polled.register(stdout, 0)
    if any(events & select.POLLERR for _, events in polled.poll(0)):
        raise BrokenPipeError


def _screen() -> os.terminal_size:
    import shutil  # loads all decompressors, and most output is piped or short

    return shutil.get_terminal_size()


def wants_colour(wish: str, stream: TextIO) -> bool:
    """Whether `stream` gets colours: as `wish` says, else only a capable terminal without NO_COLOR set."""
    if wish != "auto":
        return wish == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and _is_terminal(stream)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False
