"""A lake that was made for a controller."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import counted


def show_formatted(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write where the new lake is, and of which cluster."""
    terminal.line((report["lake"], Style.NAME), f": an empty controlled lake of cluster {report['clusterId']}")


def show_fork_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write what a fork holds, and the epoch that a controller goes on from."""
    cluster = f"cluster {report['clusterId']}" if report["clusterId"] else "a cluster of unknown id"
    held = f"offsets {report['startOffset']} to {report['endOffset'] - 1}, {counted(report['snapshots'], 'snapshot')}"
    terminal.line((report["lake"], Style.NAME), f": a controlled lake of {cluster}, {held}, epoch {report['epoch']}")
