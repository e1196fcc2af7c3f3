"""The losses and the files of a restore, from the JSON form of its report."""

from __future__ import annotations

from functools import partial
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import moment, size
from kraftlake.cli.selection.cut import Cut
from kraftlake.runtime.words import counted, in_words

_SHOWN = 6
"""The number of changes of a part, and of strays of a broker, that are shown."""
_WIDTH = 11
_NOT_RESTORED = frozenset({"from", "to", "brokers", "controllers", "producerIds"})
_PLACES = frozenset({"replicas", "addingReplicas", "removingReplicas"})


def show_loss(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write the restored state, the known state beyond it, and the changes that will be undone.

    Leaders, ISRs and registrations are left out: a restore does not bring back those of the offset.
    """
    fact = partial(terminal.fact, width=_WIDTH)
    fact("restore", f"offset {form['offset']} of {moment(form['timestamp'])}: ", _counts(form))
    fact("known", f"up to offset {form['newestOffset']}, by ", (form["newestIn"], Style.NAME))
    lost = form["lost"]
    undone = _undone(lost)
    if not undone:
        fact("lost", ("nothing that is known", Style.GOOD))
    else:
        from kraftlake.cli.views.diff_view import draw_diff

        fact("lost", ("these changes will be undone", Style.BAD))
        drawn = {"clusterId": form["clusterId"], "from": lost["from"], "to": lost["to"], **undone}
        terminal.render(draw_diff(drawn, Cut(), first=_SHOWN, rest="--json has them all"))
    gone = list(undone.get("topics", {}).get("removed", ()))
    if gone:
        what = f"{counted(len(gone), 'topic')} will be set aside by brokers, as strays: "
        fact("strays", (what, Style.BAD), _some(gone))
    for broker, names in form["strays"].items():
        what = f"{counted(len(names), 'partition')} on broker {broker}: "
        fact("strays", (what, Style.BAD), _some(names))
    brokers = f"the logs of broker{'s' * (len(form['logsOf']) > 1)} {in_words(form['logsOf'])}"
    by = brokers if form["logsOf"] else "the newest known ISRs"
    fact("leaders", f"from the replicas that lack no record, by {by}")


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"


def _undone(lost: dict[str, Any]) -> dict[str, Any]:
    """The parts of a diff that a restore undoes; for changed partitions, their replicas."""
    parts = {part: kinds for part, kinds in lost.items() if part not in _NOT_RESTORED}
    partitions = dict(parts.pop("partitions", {}))
    moved = {
        name: {field: values for field, values in fields.items() if field in _PLACES}
        for name, fields in partitions.pop("changed", {}).items()
    }
    if moved := {name: fields for name, fields in moved.items() if fields}:
        partitions["changed"] = moved
    return parts | ({"partitions": partitions} if partitions else {})


def show_restored(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write each controller's directory, its initial content, and the settings that the nodes' configuration needs."""
    fact = partial(terminal.fact, width=_WIDTH)
    for number, voter in enumerate(form["voters"]):
        where = f"{form['to']}/{voter['id']}"
        fact(
            "" if number else "written",
            (where, Style.NAME),
            f" for controller {_address(voter)}, directory id {voter['directoryId']}",
        )
    margin = f"{form['margin']:,} above all that is known"
    fact("snapshot", f"{form['checkpoint']}, {size(form['sizeInBytes'])}")
    fact("goes on", f"from offset {form['endOffset']}, epoch {form['epoch']}: {margin}, as is every epoch")
    voters = ",".join(map(_address, form["voters"]))
    servers = ",".join(_address(voter).partition("@")[2] for voter in form["voters"])
    if form["kraftVersion"] == 0:
        fact("configure", (f"controller.quorum.voters={voters}", Style.NAME), " on each node")
    else:
        fact("configure", (f"controller.quorum.bootstrap.servers={servers}", Style.NAME), " on each node")


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
