"""A lake that was made for a controller."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.terminal import Terminal
from kraftlake.cli.theme import Style, paint
from kraftlake.cli.views.words import counted
from kraftlake.cli.visible import visible


def show_formatted(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write where the new lake is, and of which cluster."""
    terminal.line(f"{_lake(terminal, report)}: an empty controlled lake of cluster {visible(report['clusterId'])}")


def show_fork_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write what a fork holds, and the epoch that a controller goes on from."""
    cluster = f"cluster {visible(report['clusterId'])}" if report["clusterId"] else "a cluster of unknown id"
    held = f"offsets {report['startOffset']} to {report['endOffset'] - 1}, {counted(report['snapshots'], 'snapshot')}"
    terminal.line(f"{_lake(terminal, report)}: a controlled lake of {cluster}, {held}, epoch {report['epoch']}")


def _lake(terminal: Terminal, report: dict[str, Any]) -> str:
    return paint(visible(report["lake"]), Style.NAME, colour=terminal.colour)
