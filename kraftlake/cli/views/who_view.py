"""The clients that made a change, as lines below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.diagnosis.attribution.words import Certainty, who_words

STYLES: Final = {Certainty.ONE: Style.NAME, Certainty.SEVERAL: Style.WARNING, Certainty.NONE: Style.QUIET}


def show_who(terminal: Terminal, form: Mapping[str, Any], indent: int) -> None:
    """Write a line for each kind of witness that was asked about a change; nothing where none was."""
    for words, certainty in who_words(form):
        terminal.line(" " * indent, (words, STYLES[certainty]))
