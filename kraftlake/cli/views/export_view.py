"""An export report as text."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import counted, size


def show_export_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write where the file is, what it holds, and the name that Kafka would look for."""
    lost = f"; {counted(len(report['losses']), 'thing')} left out" if report["losses"] else ""
    held = f": {size(report['sizeInBytes'])}, the image at offset {report['offset']}{lost}"
    terminal.line((report["path"], Style.NAME), held)
    name = report["suggestedName"]
    if not report["path"].endswith(name):
        terminal.line((f"Kafka looks for it under the name {name}", Style.QUIET))
