"""What an import did."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import counted


def show_import_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write what an import did: what is new, what the lake holds now, how far it is known to be committed."""
    lines = [_new(report), _lake(report), _committed(report)]
    if report["beforeLake"]:
        words = counted(report["beforeLake"], "record")
        lines.append(("left out", [f"{words} below the lake's first offset, {report['startOffset']}"]))
    if report["chain"]:
        lines.append(("chain", [(report["chain"], Style.NAME), ", for `kraftlake verify --at-least` later"]))
    for heading, pieces in lines:
        terminal.line((f"{heading:<10}", Style.HEADING), *pieces)


def _new(report: dict[str, Any]) -> tuple[str, list[Piece]]:
    if not report["records"] and not report["snapshots"]:
        return "imported", [("nothing: the lake is already up to date", Style.GOOD)]
    pieces: list[Piece] = []
    if report["records"]:
        batches = counted(report["batches"], "batch", "batches")
        pieces += [(counted(report["records"], "record"), Style.GOOD)]
        pieces.append(f" in {batches}, offsets {report['from']} to {report['to']}")
    if report["snapshots"]:
        pieces += [", " if pieces else "", (counted(report["snapshots"], "snapshot"), Style.GOOD)]
    if report["alreadyThere"]:
        pieces.append(f"; {counted(report['alreadyThere'], 'record')} already there")
    return "imported", pieces


def _lake(report: dict[str, Any]) -> tuple[str, list[Piece]]:
    made = " (new)" if report["created"] else ""
    cluster = f"cluster {report['clusterId']}" if report["clusterId"] else "a cluster of unknown id"
    begin, end = report["startOffset"], report["endOffset"]
    held = f"offsets {begin} to {end - 1} of {cluster}" if begin < end else f"no log yet, snapshots alone, of {cluster}"
    return "lake", [(report["lake"], Style.NAME), f"{made}: {held}"]


def _committed(report: dict[str, Any]) -> tuple[str, list[Piece]]:
    committed, end = report["committed_to"], report["endOffset"]
    if committed >= end:
        return "committed", ["every offset is known to be committed"]
    tail = counted(end - max(committed, report["startOffset"]), "record")
    if committed <= report["startOffset"]:
        return "committed", [("nothing here tells which offsets were committed", Style.WARNING)]
    return "committed", [f"offsets below {committed}; nothing here tells of the last {tail}"]
