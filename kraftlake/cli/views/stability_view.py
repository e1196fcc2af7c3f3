"""The answer of `kraftlake stability` as a table of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import NONE, moment
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.diagnosis.stability.stability import Stability, StabilityCount

_NUMBERS = ("count", "orderly", "median", "level")


def show_stability(terminal: Terminal, found: Stability, counts: Sequence[StabilityCount]) -> None:
    """Write the range and its past, then a row for each of the counts; those above their level are marked."""
    past = (
        f"compared with {counted(found.past_hours, 'hour')}"
        if found.has_level
        else f"the log has {counted(found.past_hours, 'hour')}, too few to compare with"
    )
    terminal.line(
        (f"offsets {found.from_offset} to {found.to_offset}", Style.STRONG), (f", by {found.by}; {past}", Style.QUIET)
    )
    if not counts:
        terminal.line(("nothing happened that is counted here, or is unusual", Style.QUIET))
        return
    rows = table(found.by, "what", *_NUMBERS, "", right=[*_NUMBERS], whole=found.by)
    last = ""
    for one in counts:
        name = moment(one.hour)[:16] if found.by == "hour" else "quorum" if one.broker is None else str(one.broker)
        unusual = "unusual" if found.by == "hour" else f"unusual in {counted(one.unusual or 0, 'hour')}"
        rows.add_row(
            text((name if name != last else "", Style.NAME)),
            text(one.kind.replace("_", " ")),
            text(f"{one.count:,}"),
            text((f"{one.orderly:,}", Style.QUIET)),
            text((_number(one.median), Style.QUIET)),
            text((_number(one.level), Style.QUIET)),
            text((unusual if one.unusual else "", Style.WARNING)),
        )
        last = name
    terminal.render(text(), rows)


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f}".removesuffix(".0")
