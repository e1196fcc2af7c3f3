"""A broker's local changes as a summary and a table, from their JSON form."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from kraftlake.cli.output.drawing import cut, table, text
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE
from kraftlake.cli.views.topics_view import state_cells, troubles
from kraftlake.runtime.words import counted

FIRST = 12
"""The number of partitions that are drawn without --all."""


def draw_local_changes(
    changes: dict[str, Any], *, everything: bool, limit: int | None = None, tail: int | None = None
) -> list[RenderableType]:
    """A title, a line that sums up the changes, and a table of partitions: the first `limit` or the last `tail`."""
    title = text(
        ("broker ", Style.STRONG),
        (str(changes["broker"]), Style.HEADING),
        f"  after offset {changes['from']} up to {changes['to']}",
    )
    if not changes["hasTopicsDelta"]:
        return [title, text(("no record of these offsets is about a topic", Style.QUIET))]
    rows = _rows(changes)
    if not rows:
        return [title, text(("topics changed, but nothing that this broker hosts", Style.QUIET))]
    drawn = table("", "partition", "leader", "in sync", "replicas", "epochs", "", right=("leader",), whole="partition")
    is_cut = limit is not None or tail is not None
    shown = cut(rows, limit, tail) if is_cut or everything else rows[:FIRST]
    for action, name, partition, directory in shown:
        state = state_cells(partition) if partition else [text((NONE, Style.QUIET))] * 4
        drawn.add_row(text(action), text((name, Style.NAME)), *state, text(*_remarks(partition, directory)))
    drawing = [title, _summary(changes), text(), drawn]
    if len(shown) < len(rows):
        more = counted(len(rows) - len(shown), "more partition")
        drawing.append(text((f"… {more}{'' if is_cut else ': --all shows them'}", Style.QUIET)))
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


def _rows(changes: dict[str, Any]) -> list[tuple[Piece, str, dict[str, Any] | None, str]]:
    """(action, partition name, PARTITION, log directory) of everything to delete, lead, follow and assign."""
    directories = {key.partition(":")[2]: directory for key, directory in changes["directoryIds"].items()}
    rows: list[tuple[Piece, str, dict[str, Any] | None, str]]
    rows = [(("delete", Style.BAD), name, None, directories.pop(name, "")) for name in changes["deletes"]]
    for key, word, style in (("leaders", "lead", Style.GOOD), ("followers", "follow", Style.NAME)):
        for name, change in sorted(changes[key].items()):
            elected = key == "leaders" and name in changes["electedLeaders"]
            action = ("elected" if elected else word, style)
            rows.append((action, name, change["partition"], directories.pop(name, "")))
    return rows + [(("assign", Style.QUIET), name, None, directory) for name, directory in sorted(directories.items())]


def _remarks(partition: dict[str, Any] | None, directory: str) -> list[Piece]:
    """What is not as usual, and the log directory that was assigned."""
    pieces = troubles(partition) if partition else []
    if directory:
        pieces += [", " if pieces else "", (f"log directory {directory}", Style.QUIET)]
    return pieces
