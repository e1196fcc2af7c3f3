"""An export report as text."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.terminal import Terminal
from kraftlake.cli.theme import Style, paint
from kraftlake.cli.views.words import counted, size
from kraftlake.cli.visible import visible


def show_export_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write where the file is, what it holds, and the name that Kafka would look for."""
    path = paint(visible(report["path"]), Style.NAME, colour=terminal.colour)
    lost = f"; {counted(len(report['losses']), 'thing')} left out" if report["losses"] else ""
    terminal.line(f"{path}: {size(report['sizeInBytes'])}, the image at offset {report['offset']}{lost}")
    name = report["suggestedName"]
    if not report["path"].endswith(name):
        terminal.line(paint(f"Kafka looks for it under the name {name}", Style.QUIET, colour=terminal.colour))
