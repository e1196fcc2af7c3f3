"""Reports of the commands that write: import, export, format, fork, and runs over tables."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, size
from kraftlake.runtime.words import counted

_IMPORT_LATER = "import again after the cluster's next snapshot, or with --follow --quorum HOST:PORT"


def show_import_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write the result of an import: the new records, the lake's content, how far it is known to be committed."""
    terminal.fact("imported", *_new(report))
    terminal.fact("lake", *_lake(report))
    terminal.fact("committed", *_committed(report))
    if report["beforeLake"]:
        words = counted(report["beforeLake"], "record")
        terminal.fact("left out", f"{words} below the lake's first offset, {report['startOffset']}")
    if report["chain"]:
        terminal.fact("chain", (report["chain"], Style.NAME), ", for `kraftlake verify --at-least` later")


def _new(report: dict[str, Any]) -> list[Piece]:
    if not report["records"] and not report["snapshots"]:
        return [("nothing: the lake is already up to date", Style.GOOD)]
    pieces: list[Piece] = []
    if report["records"]:
        batches = counted(report["batches"], "batch", "batches")
        pieces += [(counted(report["records"], "record"), Style.GOOD)]
        pieces.append(f" in {batches}, offsets {report['from']} to {report['to']}")
    if report["snapshots"]:
        pieces += [", " if pieces else "", (counted(report["snapshots"], "snapshot"), Style.GOOD)]
    if report["alreadyThere"]:
        pieces.append(f"; {counted(report['alreadyThere'], 'record')} already there")
    return pieces


def _lake(report: dict[str, Any]) -> list[Piece]:
    made = " (new)" if report["created"] else ""
    cluster = f"cluster {report['clusterId']}" if report["clusterId"] else "a cluster of unknown id"
    begin, end = report["startOffset"], report["endOffset"]
    held = f"offsets {begin} to {end - 1} of {cluster}" if begin < end else f"no log yet, snapshots alone, of {cluster}"
    return [(report["lake"], Style.NAME), f"{made}: {held}"]


def _committed(report: dict[str, Any]) -> list[Piece]:
    committed, end = report["committed_to"], report["endOffset"]
    if committed >= end:
        return ["every offset is known to be committed"]
    tail = counted(end - max(committed, report["startOffset"]), "record")
    if committed <= report["startOffset"]:
        known = ("no offset is known to be committed", Style.WARNING)
        return [known, f": no snapshot or change of leader shows it; {_IMPORT_LATER}"]
    return [f"offsets below {committed}; the last {tail} may not be: {_IMPORT_LATER}"]


def show_export_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write the path of the file, its content, and the name that Kafka would look for."""
    lost = f"; {counted(len(report['losses']), 'thing')} left out" if report["losses"] else ""
    held = f": {size(report['sizeInBytes'])}, the image at offset {report['offset']}{lost}"
    terminal.line((report["path"], Style.NAME), held)
    name = report["suggestedName"]
    if name is None:
        terminal.line(("Kafka looks for it under a name with its offset, which is unknown", Style.QUIET))
    elif not report["path"].endswith(name):
        terminal.line((f"Kafka looks for it under the name {name}", Style.QUIET))


def show_formatted(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write the path of the new lake, and its cluster."""
    terminal.line((report["lake"], Style.NAME), f": an empty controlled lake of cluster {report['clusterId']}")


def show_fork_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write the content of a fork, and the epoch from which a controller continues."""
    cluster = f"cluster {report['clusterId']}" if report["clusterId"] else "a cluster of unknown id"
    held = f"offsets {report['startOffset']} to {report['endOffset'] - 1}, {counted(report['snapshots'], 'snapshot')}"
    terminal.line((report["lake"], Style.NAME), f": a controlled lake of {cluster}, {held}, epoch {report['epoch']}")


def show_run(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Write the numbers that a run read and wrote."""
    if summary["offset"] <= summary["from"]:
        terminal.fact("replayed", ("nothing: all was replayed before", Style.GOOD))
        return
    taken = _on_spark(summary) if "executors" in summary else _in_process(summary)
    terminal.fact("replayed", f"offsets {summary['firstOffset']} to {summary['offset']}: {', '.join(taken)}")
    rows: dict[str, int] = summary["rows"]
    width = max(len(table) for table in rows) + 1 if rows else 0
    still_so: dict[str, int] = summary["openRows"]
    wrote = [f"{table + '/':{width}}  {_rows(count, still_so.get(table))}" for table, count in rows.items()]
    if summary["snapshots"]:
        wrote.append(f"{'snapshots/':{width}}  {len(summary['snapshots']):,}")
    for number, line in enumerate(wrote):
        terminal.fact("" if number else "wrote", line)


def _in_process(summary: dict[str, Any]) -> list[str]:
    """The cost of a run in this process."""
    deltas = [counted(summary["deltas"], "metadata delta")] if summary["deltas"] else []
    return [counted(summary["batches"], "batch", "batches"), *deltas]


def _on_spark(summary: dict[str, Any]) -> list[str]:
    """The cost of a run on Spark, and the place where the rows were made."""
    taken = [counted(summary["offset"] + 1 - summary["firstOffset"], "record")]
    if summary["steps"]:
        taken.append(f"{counted(summary['steps'], 'step')} on {counted(summary['executors'], 'executor')} of Spark")
    if summary["driverBatches"]:
        taken.append(f"{counted(summary['driverBatches'], 'micro-batch', 'micro-batches')} in Spark's driver")
    return taken


def _rows(count: int, still_so: int | None) -> str:
    """The rows that a run appended; of a history also the states that still hold."""
    if still_so is None:
        return counted(count, "row")
    return f"{counted(count, 'state')} ended, {still_so:,} still so"


def show_lakes(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write the result of a job for each of many lakes, with the cause of each failure."""
    from kraftlake.cli.output.drawing import table, text

    drawn = table("lake", "cluster", "offsets", "rows", "snapshots", right=("rows", "snapshots"), whole="lake")
    for run in form["lakes"]:
        name = text((run["lake"], Style.NAME))
        if "error" in run:
            drawn.add_row(name, "", text(("failed", Style.BAD)), "", "")
            continue
        new = run["offset"] > run["from"]
        offsets = f"{run['firstOffset']} to {run['offset']}" if new else "nothing new"
        rows = sum(run["rows"].values())
        drawn.add_row(
            name, text(run["clusterId"] or NONE), offsets, f"{rows:,}" if new else NONE, f"{len(run['snapshots']):,}"
        )
    terminal.render(drawn)
    for run in form["lakes"]:
        if "error" in run:
            terminal.line(("✗ ", Style.BAD), (run["lake"], Style.NAME), f": {run['error']}")


def show_snapshot(terminal: Terminal, built: dict[str, Any]) -> None:
    """Write the lake's new snapshot."""
    if not built["written"]:
        terminal.fact("snapshot", f"{built['name']} was there already")
        return
    begin = "the log from its start" if built["from"] is None else f"from {built['from']}"
    terminal.fact("folded", f"{begin} to offset {built['offset']}")
    held = f"{counted(built['topics'] or 0, 'topic')}, {counted(built['partitions'] or 0, 'partition')}"
    terminal.fact("wrote", f"{built['name']}: {held}")


def show_page_report(terminal: Terminal, report: dict[str, Any]) -> None:
    """Write the path of a page and its content."""
    held = f"offsets {report['fromOffset']} to {report['toOffset']}: {counted(report['events'], 'event')} of "
    held += f"{counted(report['partitions'], 'partition')} and {counted(report['brokers'], 'broker')}"
    terminal.fact("page", (report["path"], Style.NAME), f", {size(report['bytes'])}")
    terminal.fact("holds", held)
    terminal.fact("link", (f"{report['path']}#at={report['toOffset']}", Style.NAME), " opens it at that offset")
