"""What a restore loses and what it wrote, from the JSON form of its report."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import moment, size
from kraftlake.runtime.words import counted, in_words

_NAMED = 8
"""How many strays of a broker are named."""


def show_loss(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write which state is restored and what is known beyond it, as the changes that will be undone."""
    _line(terminal, "restore", f"offset {form['offset']} of {moment(form['timestamp'])}, ", _counts(form))
    _line(terminal, "known", f"up to offset {form['newestOffset']}, by ", (form["newestIn"], Style.NAME))
    lost = form["lost"]
    if lost.keys() <= {"from", "to"}:
        _line(terminal, "lost", ("nothing that is known", Style.GOOD))
    else:
        from kraftlake.cli.views.diff_view import draw_diff

        _line(terminal, "lost", ("these changes will be undone", Style.BAD))
        terminal.render(draw_diff({"clusterId": form["clusterId"], **lost}, everything=False))
    for broker, names in form["strays"].items():
        more = ", …" if len(names) > _NAMED else ""
        what = f"broker {broker} will set {counted(len(names), 'partition')} aside as strays: "
        _line(terminal, "strays", (what, Style.BAD), f"{', '.join(names[:_NAMED])}{more}")


def show_restored(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write where each controller's directory is, what it begins with, and what the nodes' configuration must say."""
    for number, voter in enumerate(form["voters"]):
        where = f"{form['to']}/{voter['id']}"
        _line(
            terminal,
            "" if number else "written",
            (where, Style.NAME),
            f" for controller {_address(voter)}, directory id {voter['directoryId']}",
        )
    margin = f"{form['margin']:,} above all that is known"
    _line(terminal, "snapshot", f"{form['checkpoint']}, {size(form['sizeInBytes'])}")
    _line(terminal, "goes on", f"from offset {form['endOffset']}, epoch {form['epoch']}: {margin}, as is every epoch")
    voters = ",".join(map(_address, form["voters"]))
    servers = ",".join(_address(voter).partition("@")[2] for voter in form["voters"])
    if form["kraftVersion"] == 0:
        _line(terminal, "configure", (f"controller.quorum.voters={voters}", Style.NAME), " on each node")
    else:
        _line(terminal, "configure", (f"controller.quorum.bootstrap.servers={servers}", Style.NAME), " on each node")


def _line(terminal: Terminal, heading: str, *pieces: Any) -> None:
    terminal.line((f"{heading:<11}", Style.HEADING), *pieces)


def _counts(form: dict[str, Any]) -> str:
    counts = (
        counted(form["topics"], "topic"),
        counted(form["partitions"], "partition"),
        counted(len(form["brokers"]), "broker"),
    )
    return in_words(counts)


def _address(voter: dict[str, Any]) -> str:
    host = f"[{voter['host']}]" if ":" in voter["host"] else voter["host"]
    return f"{voter['id']}@{host}:{voter['port']}"
