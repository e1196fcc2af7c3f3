"""The episodes of a generated history, as a table; from the JSON form of `kraftlake generate`."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import moment
from kraftlake.runtime.words import counted

FIRST = 20
"""The number of episodes that are drawn."""


def draw_generated(form: dict[str, Any]) -> list[RenderableType]:
    """A summary of the lake, and a row for each of the first episodes."""
    title = text(
        (form["lake"], Style.NAME),
        f": a controlled lake of cluster {form['clusterId']}, {counted(form['endOffset'], 'record')}, "
        f"{counted(form['partitions'], 'partition')}, until {moment(form['lastTimestamp'])}",
    )
    episodes = table("offsets", "when", "what", "", right=("offsets",))
    for episode in form["episodes"][:FIRST]:
        episodes.add_row(
            text((f"{episode['firstOffset']} to {episode['lastOffset']}", Style.STRONG)),
            text((moment(episode["timestamp"]), Style.QUIET)),
            text((episode["name"], Style.HEADING)),
            text(episode["what"]),
        )
    more = len(form["episodes"]) - FIRST
    rest = [text((f"… and {counted(more, 'episode')} more: --json has all", Style.QUIET))] if more > 0 else []
    return [title, text(), episodes, *rest]
