"""The differences between two clusters as a tree of + - and ~, from the JSON form of a drift."""

from __future__ import annotations

from typing import Any

from rich.tree import Tree

from kraftlake.cli.output.drawing import branch
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import moment
from kraftlake.cli.selection.cut import Cut
from kraftlake.cli.views.diff_view import draw_diff
from kraftlake.runtime.words import counted


def draw_drift(form: dict[str, Any], cut: Cut) -> Tree:
    """The tree of a drift."""
    root = draw_diff(form, cut, head=[*_side(form["source"]), "  →  ", *_side(form["other"])])
    unknown = form["notCompared"]
    if unknown:
        shown = unknown if cut.everything else unknown[:3]
        rest = f" and {counted(len(unknown) - len(shown), 'more field')}" if len(shown) < len(unknown) else ""
        branch(root, "not compared", (f"one side has no value of {', '.join(shown)}{rest}", Style.QUIET))
    return root


def _side(facts: dict[str, Any]) -> list[Piece]:
    if facts["offset"] is None:
        return [(facts["path"], Style.HEADING)]
    at = f" offset {facts['offset']}"
    time = "" if facts["timestamp"] is None else f", {moment(facts['timestamp'])}"
    return [(facts["path"], Style.HEADING), at, (time, Style.QUIET)]
