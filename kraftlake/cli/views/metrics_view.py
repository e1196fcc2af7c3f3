"""The controller's metrics and the brokers' partitions as tables; from the JSON form of `kraftlake metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, moment

FIRST = 12
"""The number of partitions of a kind that are named."""

_KINDS = {
    "led": ("led", Style.PLAIN),
    "followed": ("followed", Style.PLAIN),
    "outOfIsr": ("out of ISR", Style.WARNING),
    "underMinIsr": ("under min ISR", Style.BAD),
    "offline": ("offline", Style.BAD),
}
_TROUBLES = {
    "FencedBrokerCount": Style.WARNING,
    "OfflinePartitionsCount": Style.BAD,
    "PreferredReplicaImbalanceCount": Style.WARNING,
}


_UNHEALTHY = {"underMinIsrPartitions": Style.BAD, "ledByFencedPartitions": Style.BAD, "offlineDirectories": Style.BAD}


def draw_metrics(form: dict[str, Any]) -> list[RenderableType]:
    """A row for each metric and each count of what is not as it should be, then one for each broker."""
    metrics = table("metric", "value", right=("value",))
    for name, value in form["metrics"].items():
        style = _TROUBLES.get(name, Style.PLAIN) if value else Style.PLAIN
        metrics.add_row(text((name, Style.NAME)), text((f"{value:,}", style)))
    for name, value in form["health"].items():
        style = _UNHEALTHY.get(name, Style.WARNING) if value else Style.PLAIN
        metrics.add_row(text((_words(name), Style.NAME)), text((f"{value:,}", style)))
    brokers = table("broker", *(words for words, _ in _KINDS.values()), right=[words for words, _ in _KINDS.values()])
    for id_, counts in form["brokers"].items():
        cells = (text((f"{counts[kind]:,}" if counts[kind] else NONE, style)) for kind, (_, style) in _KINDS.items())
        brokers.add_row(text((id_, Style.STRONG)), *cells)
    return [text(*title(form)), text(), metrics, text(), brokers]


def _words(name: str) -> str:
    """`underMinIsrPartitions` → `under min ISR partitions`."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).replace(" isr ", " ISR ")


def draw_broker_partitions(form: dict[str, Any]) -> list[RenderableType]:
    """A line for each kind of partition, with their names."""
    rows = table("", "", "partitions", right=("",))
    for kind, (words, style) in _KINDS.items():
        names = form[kind]
        rows.add_row(text((words, Style.HEADING)), text((f"{len(names):,}", style)), text(*named(names)))
    return [text(*title(form)), text(("broker ", Style.STRONG), (str(form["broker"]), Style.HEADING)), rows]


def named(names: Sequence[str]) -> list[Piece]:
    """The names of the first partitions, and the number of the others."""
    rest = f" … {len(names) - FIRST:,} more: --json names them" if len(names) > FIRST else ""
    return [", ".join(names[:FIRST]) or NONE, (rest, Style.QUIET)]


def title(form: dict[str, Any]) -> list[Piece]:
    """The offset, epoch and time of an image, from the JSON form of its provenance."""
    when = "" if form["timestamp"] is None else f", {moment(form['timestamp'])}"
    return [("at offset ", Style.STRONG), (f"{form['offset']}", Style.HEADING), f", epoch {form['epoch']}{when}"]
