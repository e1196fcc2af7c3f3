"""The availability of topics, partitions or brokers as a table; from the JSON form of `kraftlake availability`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from kraftlake.cli.output.drawing import table, text
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, moment
from kraftlake.runtime.words import counted, duration

_TROUBLES: Final = {
    "offline": ("offlineSeconds", Style.BAD),
    "any offline": ("anyOfflineSeconds", Style.BAD),
    "led by fenced": ("ledByFencedSeconds", Style.BAD),
    "under min ISR": ("underMinIsrSeconds", Style.WARNING),
    "one in sync": ("oneInSyncSeconds", Style.WARNING),
}


def draw_availability(form: dict[str, Any], *, everything: bool) -> list[RenderableType]:
    """A row for each topic, partition or broker with a trouble, the worst first, then the total, and the longest."""
    by, rows, total = form["by"], form["rows"], form["total"]
    shown = rows if everything else [row for row in rows if _is_troubled(row)]
    of_broker = ("losses", "fenced") if by == "broker" else ()
    troubles = [name for name, (key, _) in _TROUBLES.items() if total[key]]
    right = [*of_broker, "partitions", "available", *troubles]
    drawn = table(by, *right, "longest", right=right, whole=by)
    for row in shown:
        drawn.add_row(text((_name(row, by), Style.NAME)), *_cells(row, troubles, is_broker=bool(of_broker)))
    own = [text()] * len(of_broker)
    drawn.add_row(text(("total", Style.STRONG)), *own, *_cells(total, troubles))
    span = f"{moment(form['beginTimestamp'])} to {moment(form['endTimestamp'])}"
    length = duration(form["endTimestamp"] - form["beginTimestamp"])
    made: list[RenderableType] = [
        text((span, Style.HEADING), f", {length}, offsets {form['firstOffset']} to {form['lastOffset']}"),
        text(),
        drawn,
    ]
    if len(shown) < len(rows):
        made.append(text((f"{counted(len(rows) - len(shown), by)} without any of that: --all shows them", Style.QUIET)))
    if total["longestTrouble"] is not None:
        made.append(text(*_longest(total)))
    return made


def _is_troubled(row: dict[str, Any]) -> bool:
    return any(row[key] for key, _ in _TROUBLES.values()) or bool(row.get("losses"))


def _name(row: dict[str, Any], by: str) -> str:
    if by == "broker":
        return "no broker" if row["broker"] is None else str(row["broker"])
    return f"{row['topic']}-{row['partition']}" if by == "partition" else str(row["topic"])


def _cells(row: dict[str, Any], troubles: Sequence[str], *, is_broker: bool = False) -> list[Text]:
    cells = [text(f"{row['losses']:,}"), text(_length(row["fencedSeconds"]))] if is_broker else []
    cells += [text(f"{row['partitions']:,}"), text(percent_words(row["availablePercent"]))]
    for key, style in map(_TROUBLES.__getitem__, troubles):
        cells.append(text((_length(row[key]), style if row[key] else Style.QUIET)))
    longest = NONE if row["longestTrouble"] is None else _stretch(row)
    return [*cells, text((longest, Style.QUIET))]


def _stretch(row: dict[str, Any]) -> str:
    """`33.9s broker 2 fenced`; of a row of that broker `33.9s fenced`."""
    return f"{_length(row['longestSeconds'])} {_cause(row, named='broker' not in row)}"


def _longest(row: dict[str, Any]) -> list[Piece]:
    trouble = row["longestTrouble"].replace("_", " ").replace("isr", "ISR")
    end = row["longestEndTimestamp"]
    until = "to the end and on" if end is None else f"to {moment(end)}"
    at = "" if row["causeOffset"] is None else f" at offset {row['causeOffset']}"
    return [
        ("the longest: ", Style.STRONG),
        (row["longestPartition"], Style.NAME),
        f" was {trouble} for {_length(row['longestSeconds'])} from {moment(row['longestBeginTimestamp'])} {until}: ",
        f"{_cause(row)}{at}",
    ]


def _cause(row: dict[str, Any], *, named: bool = True) -> str:
    """`broker 2 shut down`, `created so`."""
    words = _CAUSES.get(row["cause"], row["cause"].replace("_", " "))
    return words if row["causeBroker"] is None or not named else f"broker {row['causeBroker']} {words}"


_CAUSES: Final = {
    "configured": "min.insync.replicas was set",
    "created": "created so",
    "changed": "changed so",
    "earlier": "so before the log",
    "directory_failed": "lost a log directory",
    "out_of_sync": "fell out of sync",
}


def _length(seconds: float) -> str:
    """`18m34s`, `9.4s`, `420ms`, `–` for none: one word, for a table of many columns."""
    millis = round(seconds * 1000)
    if millis < 60_000:
        return NONE if not millis else f"{millis}ms" if millis < 1000 else f"{seconds:.1f}s"
    words = duration(millis).replace("min", "m")
    return "".join(words.split())


def percent_words(percent: float | None) -> str:
    """Per cent with two digits, and as many as it takes to tell it from a hundred: `99.95`, `99.9996`."""
    if percent is None:
        return NONE
    if percent == 100:
        return "100"
    return next(words for digits in range(2, 16) if not (words := f"{Decimal(percent):.{digits}f}").startswith("100"))
