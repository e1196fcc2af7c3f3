"""A plan, and what came of its steps, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import moment
from kraftlake.cli.views.diff_view import value_words
from kraftlake.cli.views.image_view import draw_whole
from kraftlake.cli.views.who_view import show_who
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.diagnosis.undo.applying import Applied, Taken
    from kraftlake.diagnosis.undo.plan import Plan
    from kraftlake.diagnosis.undo.rehearsal import Rehearsal

_STYLES = {
    "safe": Style.GOOD,
    "access": Style.WARNING,
    "destructive": Style.BAD,
    "partial": Style.EVENT,
    "impossible": Style.QUIET,
}
_WIDTH = max(map(len, _STYLES))


def show_plan(terminal: Terminal, plan: Plan, form: dict[str, Any]) -> None:
    """Write a plan: its head, two lines or more for each step, what stays as it is, and the counts."""
    now, then = form["now"], form["to"]
    states = f"{now['offset']}, {moment(now['timestamp'])}, back to {then['offset']}, {moment(then['timestamp'])}"
    cluster = form["clusterId"] or "of unknown id"
    terminal.line(("cluster ", Style.STRONG), (cluster, Style.HEADING), f"  from offset {states}")
    for number, step in enumerate(form["steps"], 1):
        _show_step(terminal, number, step)
    for note in form["notes"]:
        terminal.line(("  stays  ", Style.QUIET), note)
    if not form["steps"]:
        terminal.line(("nothing to undo", Style.GOOD))
        return
    counts = ", ".join(f"{count} {one.value}" for one, count in plan.counts().items())
    terminal.line((f"{counted(len(form['steps']), 'step')}: {counts}; nothing is changed", Style.STRONG))


def _show_step(terminal: Terminal, number: int, step: dict[str, Any]) -> None:
    class_ = step["class"]
    head: list[Piece] = [f"{number:>4}  ", (f"{class_:<{_WIDTH}}", _STYLES[class_]), "  "]
    verb = "can't be undone" if step["action"] == "none" else step["action"].replace("-", " ")
    if step["action"] in ("create-acl", "delete-acl"):
        terminal.line(*head, f"{verb}  ", (step["changes"][0]["after"] or step["changes"][0]["before"], Style.NAME))
    else:
        terminal.line(*head, f"{verb}  ", (step["path"], Style.NAME), *_changes(step["changes"]))
    if step["note"]:
        terminal.line(f"{'':>{_WIDTH + 8}}{step['note']}")
    proofs = [change["undoneBy"] for change in step["changes"] if change["undoneBy"] is not None]
    each = {(proof["offset"], proof["timestamp"], proof["type"]): proof for proof in proofs}
    for (offset, time, type_), proof in sorted(each.items(), key=lambda item: item[0][0]):
        by = "" if type_ is None else f" by {type_.removesuffix('_RECORD')}"
        terminal.line((f"{'':>{_WIDTH + 8}}undone at offset {offset}, {moment(time)},{by}", Style.QUIET))
        show_who(terminal, proof, _WIDTH + 8)


def _changes(changes: list[dict[str, Any]]) -> list[Piece]:
    pieces: list[Piece] = []
    for change in changes:
        before, after = (value_words(change["field"], change[side]) for side in ("before", "after"))
        name = f"partition {change['field']}" if change["field"].isdecimal() else change["field"]
        pieces += [", " if pieces else "  ", f"{name} ", (before, Style.BAD), " → ", (after, Style.GOOD)]
    return pieces


def show_rehearsal(terminal: Terminal, form: dict[str, Any], found: Rehearsal, *, show_secrets: bool) -> None:
    """Write the answer that a controller gives to each step, the image that comes out, and what still differs."""
    for number, (step, one) in enumerate(zip(form["steps"], form["answers"], strict=True), 1):
        answer = one["answer"]
        if answer is None:
            outcome: Piece = ("no request", Style.QUIET)
        elif answer["error"] == "NONE":
            outcome = ("✓", Style.GOOD)
        else:
            outcome = (f"✗ {answer['error']}: {answer['message']}", Style.BAD)
        class_ = (f"{step['class']:<{_WIDTH}}", _STYLES[step["class"]])
        terminal.line(f"{number:>4}  ", class_, f"  {step['path']}  ", outcome)
    terminal.render(draw_whole(found.image, show_secrets=show_secrets))
    left = found.left.changes
    if not left:
        terminal.line(("equal: the state that comes out is the one that is wanted", Style.GOOD))
        return
    terminal.line((f"{counted(len(left), 'entry', 'entries')} would still differ", Style.WARNING))
    for one_left in left:
        terminal.line(f"      {one_left.change.kind}  ", (one_left.path, Style.NAME))


_OUTCOMES = {
    "applied": ("✓ applied", Style.GOOD),
    "already": ("✓ already so", Style.QUIET),
    "skipped": ("– ", Style.WARNING),
    "waits": ("… ", Style.QUIET),
}


class AppliedView:
    """Writes a line for each step of an application as it is taken, and what the cluster is at the end."""

    def __init__(self, terminal: Terminal, count: int) -> None:
        self._terminal = terminal
        self._count = count

    def step(self, taken: Taken) -> None:
        """Write what came of a step."""
        outcome, style = _OUTCOMES[taken.outcome]
        class_ = taken.step.step_class.value
        self._terminal.line(
            f"{taken.number:>4}/{self._count}  ", (f"{class_:<{_WIDTH}}", _STYLES[class_]), f"  {taken.step.path}  ",
            (f"{outcome}{taken.reason}", style),
        )  # fmt: skip

    def end(self, found: Applied, reasons: Mapping[str, str], journal: str) -> None:
        """Write whether the cluster is what it was."""
        terminal, left = self._terminal, found.left.changes
        if left:
            terminal.line(
                (
                    f"{counted(len(left), 'entry', 'entries')} still {'differs' if len(left) == 1 else 'differ'}:",
                    Style.WARNING,
                )
            )
        else:
            terminal.line(("equal: the cluster, read back whole, is what it was", Style.GOOD))
        for one in left:
            why = reasons.get(one.path) or "changed since the plan was made"
            terminal.line("      ", (one.path, Style.NAME), f"  {why}")
        terminal.line((f"journal: {journal}", Style.QUIET))
