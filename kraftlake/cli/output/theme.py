"""The few colours of the terminal form, by meaning; the sixteen base colours only, so that a user's palette holds."""

from __future__ import annotations

from enum import Enum

from kraftlake.cli.output.visible import visible


class Style(Enum):
    """The meaning of a piece of text. The value is its name in rich and its ANSI code."""

    PLAIN = ("", "")
    STRONG = ("bold", "1")
    QUIET = ("dim", "2")
    NAME = ("cyan", "36")
    NUMBER = ("blue", "34")
    GOOD = ("green", "32")
    WARNING = ("yellow", "33")
    BAD = ("red", "31")
    HEADING = ("bold cyan", "1;36")
    EVENT = ("magenta", "35")

    @property
    def rich(self) -> str:
        """The style as rich writes it."""
        return self.value[0]

    @property
    def ansi(self) -> str:
        """The parameters of the ANSI escape sequence, empty for none."""
        return self.value[1]


def paint(text: str, style: Style, *, colour: bool) -> str:
    """`text` within the ANSI codes of `style`, or as it is when `colour` is off."""
    return f"\x1b[{style.ansi}m{text}\x1b[0m" if colour and style.ansi and text else text


Piece = str | tuple[str, Style]
"""Text, or text with its meaning. Not yet safe to show: `painted` and `drawing.text` escape it."""


def styled(piece: Piece) -> tuple[str, Style]:
    """A piece's text, made visible, and its style."""
    content, style = (piece, Style.PLAIN) if isinstance(piece, str) else piece
    return visible(content), style


def painted(*pieces: Piece, colour: bool) -> str:
    """The pieces in a row, safe to show, each within the ANSI codes of its style where `colour` is on."""
    shown = map(styled, pieces)
    return "".join([paint(content, style, colour=True) if colour else content for content, style in shown])
