"""The answer of `kraftlake upgrade-check` as lines of a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import moment

if TYPE_CHECKING:
    from kraftlake.diagnosis.upgrade.obstacle import RecordPlace
    from kraftlake.diagnosis.upgrade.upgrade_check import UpgradeCheck


def show_upgrade(terminal: Terminal, found: UpgradeCheck) -> None:
    """Write the verdict, then each obstacle with its record and the command that mends it."""
    target = found.target
    level = f"{target.feature} {target.words(found.current)} → {target.words(target.level)}"
    asked = f"Kafka {target.release}, {level}" if target.release else level
    verdict = ("nothing refuses it", Style.GOOD) if found.allowed else ("refused", Style.BAD)
    terminal.line((asked, Style.HEADING), f"  at offset {found.provenance.offset}: ", verdict)
    for one in found.obstacles:
        mark = ("✗ ", Style.BAD) if one.refuses else ("• ", Style.WARNING)
        terminal.line(mark, one.sentence, (_place(one.record), Style.QUIET))
        if one.command is not None:
            terminal.line("    ", (one.command, Style.NAME))


def _place(record: RecordPlace | None) -> str:
    """`  offset 12, 2026-11-21 07:45:27.235Z, REGISTER_BROKER`."""
    if record is None:
        return ""
    time = "" if record.timestamp is None else f", {moment(record.timestamp)}"
    made = "snapshot, or earlier" if record.type is None else record.type.removesuffix("_RECORD")
    return f"  offset {record.offset}{time}, {made}"
