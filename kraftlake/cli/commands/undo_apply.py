"""`kraftlake undo --apply`: the switches, the names to type, and the answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import MeasureParameter, PathParameter
from kraftlake.cli.options.shared import Decorator, together
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.diagnosis.undo.plan import Plan
    from kraftlake.diagnosis.undo.step import Step, StepClass

_MOVED = "its replicas are on other brokers: --assignments moves them back"
_CHANGED_BACK = "it was as wanted, and was changed again: another tool may keep its own state there"
_SECTION = "Applying a plan"

apply_options: Decorator = together(
    option("--apply", is_flag=True, section=_SECTION, help="Take the steps, at the cluster itself."),
    option(
        "--on",
        "quorum",
        metavar="HOST:PORT",
        section=_SECTION,
        help="Brokers or controllers of the cluster; by default SOURCE, where it is one. HOST:PORT[,HOST:PORT…].",
    ),
    option("--access", is_flag=True, section=_SECTION, help="Also steps that widen who may do what, or how much."),
    option("--destructive", is_flag=True, section=_SECTION, help="Also steps that delete topics, users or records."),
    option("--yes", is_flag=True, section=_SECTION, help="Ask for no names to be typed."),
    option(
        "--journal",
        type=PathParameter("file"),
        metavar="FILE",
        section=_SECTION,
        help="Where each request is written before it is sent; by default undo-CLUSTER-TO.jsonl here.",
    ),
    option(
        "--rate",
        type=MeasureParameter(min=0.01),
        default=10.0,
        show_default=True,
        section=_SECTION,
        help="The most steps in a second.",
    ),
)


def apply_plan_of(
    call: Call,
    source: Source,
    plan: Plan,
    on: str,
    *,
    access: bool,
    destructive: bool,
    yes: bool,
    journal: str | None,
    rate: float,
) -> None:
    """Take the steps of a plan and write what came of them; exit code 3 where the cluster is not what it was."""
    from kraftlake.diagnosis.undo.apply_plan import ALWAYS, apply_plan
    from kraftlake.diagnosis.undo.applying import Pace
    from kraftlake.diagnosis.undo.step import StepClass

    wanted = ((access, StepClass.ACCESS), (destructive, StepClass.DESTRUCTIVE))
    classes = (*ALWAYS, *(one for is_wanted, one in wanted if is_wanted))
    if not yes:
        _confirm(call, plan, classes)
    name = journal or f"undo-{plan.cluster_id or 'cluster'}-{plan.then.offset}.jsonl"
    view = None
    if call.in_words:
        from kraftlake.cli.views.undo_view import AppliedView

        view = AppliedView(call.terminal, len(plan.steps))
    found = apply_plan(
        plan, source, on, journal=Path(name), classes=classes, command_config=call.command_config,
        pace=Pace(rate=rate), on_step=view.step if view is not None else lambda _: None, warn=call.terminal.warn,
    )  # fmt: skip
    reasons = {one.step.path: _CHANGED_BACK for one in found.steps if one.outcome != "skipped"}
    reasons |= {one.path: _MOVED for one in found.left.changes if one.change.part == "topics" and not plan.assignments}
    reasons |= {one.step.path: one.reason for one in found.steps if one.outcome == "skipped"}
    form = plan.to_json(show_secrets=call.show_secrets) | {
        "journal": name,
        "results": [one.to_json() for one in found.steps],
        "left": found.left.to_json(show_secrets=call.show_secrets),
        "reasons": {one.path: reasons.get(one.path) for one in found.left.changes},
    }
    if not call.answered(form) and view is not None:
        view.end(found, reasons, name)
    if not found.left.is_empty():
        raise click.exceptions.Exit(UNHEALTHY)


def _confirm(call: Call, plan: Plan, classes: Sequence[StepClass]) -> None:
    """Ask for the names of what steps of access and destruction are about. Raises click's errors where not given."""
    from kraftlake.diagnosis.undo.step import StepClass

    for class_ in (StepClass.ACCESS, StepClass.DESTRUCTIVE):
        names = sorted({_name(step) for step in plan.steps if step.step_class is class_ and step.can_run})
        if class_ not in classes or not names:
            continue
        steps = counted(sum(step.step_class is class_ for step in plan.steps), f"{class_.value} step")
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"The plan has {steps}, whose names are to be typed on a terminal: give --yes to take them without."
            )
        call.terminal.line(f"{steps}: {', '.join(names)}")
        typed = click.prompt("Type these names, with commas between them", default="", show_default=False, err=True)
        if {one.strip() for one in typed.split(",")} != {*names}:
            raise click.ClickException("Other names were typed: nothing is changed.")


def _name(step: Step) -> str:
    """The name of what a step is about: of a topic, a user, a principal, a resource."""
    subject = step.subject
    if "acl" in subject:
        return str(subject["acl"]["principal"])
    if "entity" in subject:
        return " ".join(str(name or "default") for name in subject["entity"].values())
    return str(subject.get("topic") or subject.get("user") or subject.get("name") or step.path)
