"""The contents of a bundle, from the JSON form of its plan."""

from __future__ import annotations

from functools import partial
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.runtime.words import counted

_WIDTH = 12


def show_contents(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write what a bundle holds, and what it does not."""
    fact = partial(terminal.fact, width=_WIDTH)
    cluster = f" of cluster {form['clusterId']}" if form["clusterId"] else ""
    begin, end = form["startOffset"], form["endOffset"]
    log = f"offsets {begin} to {end - 1}" if begin < end else "no offsets"
    fact("log", f"{log}{cluster}, {counted(len(form['snapshots']), 'snapshot')}")
    for number, (type_, count) in enumerate(form["records"].items()):
        fact("" if number else "records", f"{count:>9,}  ", (type_, Style.NAME))
    blanked = form["secrets"]
    for number, (type_, count) in enumerate(blanked.items()):
        fact("" if number else "blanked", f"{count:>9,}  ", (type_, Style.NAME))
    if not blanked:
        fact("blanked", "nothing: there are no secrets")
    if form["pseudonyms"]:
        for number, (kind, count) in enumerate(form["names"].items()):
            fact("" if number else "replaced", f"{count:>9,}  ", (kind, Style.NAME))
        fact("kept", "offsets, times, ids, ports, listeners, the cluster's id, names of Kafka's own")
    else:
        fact("names", ("kept", Style.WARNING), ": --pseudonyms KEY replaces them")
    if form["unknownRecords"]:
        fact("left out", f"{counted(form['unknownRecords'], 'record')} of unknown type, NoOpRecords in the bundle")
    if form["unknownTaggedFields"]:
        fact("left out", counted(form["unknownTaggedFields"], "unknown tagged field"))
    for number, fault in enumerate(form["faults"]):
        fact("" if number else "faults", (fault, Style.WARNING))


def show_bundle(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write the path of a bundle and of its key."""
    fact = partial(terminal.fact, width=_WIDTH)
    fact("written", (form["file"], Style.NAME))
    if form["keyFile"]:
        fact("key", (form["keyFile"], Style.NAME), ", to keep: it has all names")
