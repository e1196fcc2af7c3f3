"""A broker's local changes as a summary and a table, from their JSON form."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.form_rows import local_changes
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE
from kraftlake.cli.selection.cut import Cut
from kraftlake.cli.views.topics_view import state_cells, troubles
from kraftlake.runtime.words import counted

FIRST = 12
"""The number of partitions that are drawn without --all."""

_STYLES = {
    "delete": Style.BAD,
    "elected": Style.GOOD,
    "lead": Style.GOOD,
    "follow": Style.NAME,
    "assign": Style.QUIET,
}


def draw_local_changes(changes: dict[str, Any], cut: Cut) -> list[RenderableType]:
    """A title, a line that sums up the changes, and a table of the partitions that are wanted, else of the first."""
    title = text(
        ("broker ", Style.STRONG),
        (str(changes["broker"]), Style.HEADING),
        f"  after offset {changes['from']} up to {changes['to']}",
    )
    if not changes["hasTopicsDelta"]:
        return [title, text(("no record of these offsets is about a topic", Style.QUIET))]
    rows = list(local_changes(changes))
    if not rows:
        return [title, text(("topics changed, but nothing that this broker hosts", Style.QUIET))]
    drawn = table("", "partition", "leader", "in sync", "replicas", "epochs", "", right=("leader",), whole="partition")
    shown = cut.of(rows) if cut.is_given else rows[:FIRST]
    for action, name, change, directory in shown:
        partition = None if change is None else change["partition"]
        state = state_cells(partition) if partition else [text((NONE, Style.QUIET))] * 4
        of_name = text((action, _STYLES[action])), text((name, Style.NAME))
        drawn.add_row(*of_name, *state, text(*_remarks(partition, directory)))
    drawing = [title, _summary(changes), text(), drawn]
    if len(shown) < len(rows):
        more = counted(len(rows) - len(shown), "more partition")
        drawing.append(text((f"… {more}{'' if cut.is_cut else ': --all shows them'}", Style.QUIET)))
    return drawing


def _summary(changes: dict[str, Any]) -> RenderableType:
    pieces: list[Piece] = []
    for key, word, style in (
        ("deletes", "to delete", Style.BAD),
        ("leaders", "to lead", Style.GOOD),
        ("followers", "to follow", Style.NAME),
    ):
        if changes[key]:
            pieces += [", " if pieces else "", (f"{counted(len(changes[key]), 'partition')} {word}", style)]
        if key == "leaders" and changes["electedLeaders"]:
            pieces.append(f" ({len(changes['electedLeaders']):,} newly elected)")
    if changes["directoryIds"]:
        words = counted(len(changes["directoryIds"]), "log directory assigned", "log directories assigned")
        pieces += [", " if pieces else "", words]
    return text(*pieces)


def _remarks(partition: dict[str, Any] | None, directory: str) -> list[Piece]:
    """The unusual values of a partition, and its assigned log directory."""
    pieces = troubles(partition) if partition else []
    if directory:
        pieces += [", " if pieces else "", (f"log directory {directory}", Style.QUIET)]
    return pieces
