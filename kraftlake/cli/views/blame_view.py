"""The answers of `kraftlake blame` and `kraftlake bisect`, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import moment
from kraftlake.cli.views.diff_view import field_pieces
from kraftlake.cli.views.lines import LineTimes
from kraftlake.cli.views.who_view import show_who
from kraftlake.image.kafka_names import acl_words

if TYPE_CHECKING:
    from kraftlake.diagnosis.things import Thing

_INDENT = 14
"""The columns before the epoch's, and two more."""


def show_blame(terminal: Terminal, thing: Thing, forms: Sequence[dict[str, Any]]) -> None:
    """Write a line for each change of a thing: offset, epoch, time, record type, before → after."""
    terminal.line((thing.text, Style.HEADING))
    times = LineTimes(terminal)
    for form in forms:
        time = times.of(-1 if form["timestamp"] is None else form["timestamp"])
        head = (f"{form['offset']:>8}", Style.NUMBER), (f" {form['epoch']:>3}  {time}  ", Style.QUIET)
        if form.get("orEarlier"):
            so = ("  so since this snapshot or earlier", Style.WARNING)
            terminal.line(*head, "snapshot", *_value(thing, form["after"]), so)
            show_who(terminal, form, _INDENT)
            continue
        later = f"  takes effect at offset {form['effectiveOffset']}" if "effectiveOffset" in form else ""
        terminal.line(*head, form["type"].removesuffix("_RECORD"), *_change(thing, form), (later, Style.QUIET))
        show_who(terminal, form, _INDENT)


def _change(thing: Thing, form: dict[str, Any]) -> list[Piece]:
    """The change by a record, in words; for a whole partition or broker, the fields that differ."""
    before, after = form["before"], form["after"]
    if not thing.is_entity:
        return field_pieces("changed", {thing.field or "value": [before, after]}, everything=True)
    if before is None:
        return [("  created", Style.GOOD), *_value(thing, after)]
    if after is None:
        return [("  removed", Style.BAD), *_value(thing, before)]
    differing = {name: [before[name], after[name]] for name in after if before[name] != after[name]}
    return field_pieces("changed", differing, everything=True) or ["  changed, in what is not shown"]


def _value(thing: Thing, value: Any) -> list[Piece]:
    """A value of a thing in words; nothing for a topic."""
    if not thing.is_entity:
        return field_pieces("added", {thing.field or "value": value}, everything=True)
    if thing.kind == "acl":
        return [f"  {acl_words(value)}"]
    return field_pieces("added", value, everything=False) if isinstance(value, dict) else []


def show_bisected(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write one line: offset, time, and the condition that holds from there on."""
    held_not = form["before"] is False
    how = ", and not before" if held_not else " already at this offset, the first of the range"
    terminal.line(
        (f"{form['offset']:>8}", Style.NUMBER), (f"  {moment(form['timestamp'])}  ", Style.QUIET),
        (form["condition"], Style.NAME), f"  holds{how}",
    )  # fmt: skip
