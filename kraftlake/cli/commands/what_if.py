"""`kraftlake what-if`: the controller's reaction to lost or restarted brokers, or reassigned partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import given_parameters, option
from kraftlake.cli.options.parameters import BROKERS, RACKS, PathParameter
from kraftlake.cli.options.shared import Decorator, command
from kraftlake.cli.output.form_rows import standings_of
from kraftlake.cli.output.formats import CSV, MARKDOWN

if TYPE_CHECKING:
    from kraftlake.diagnosis.trial.steps import Step

_STEPS = "What happens, step by step in the order given"


def _step(name: str, text: str, type_: Any, metavar: str) -> Decorator:
    """An option for a step, of which there may be several."""
    return option(f"--{name}", multiple=True, type=type_, section=_STEPS, metavar=metavar, help=text)


@command("What would happen if a broker or a rack were lost, or restarted?", at=True)
@_step(
    "lose-broker", "This broker is lost: its session ends, and it is fenced. Of 1,2 one after the other.", BROKERS, "ID"
)
@_step("lose-rack", "All brokers of this rack are lost.", RACKS, "NAME")
@_step("restart", "This broker is shut down in order, unless it is lost already, and starts again.", BROKERS, "ID")
@_step(
    "reassign", "The reassignment in this JSON file of kafka-reassign-partitions begins.", PathParameter("file"), "FILE"
)
@option(
    "--catch-up",
    "catch_up",
    count=True,
    section=_STEPS,
    help="All active brokers catch up and join the ISRs. No other step assumes that.",
)
@option("--each-broker", is_flag=True, help="A table of what the loss of each broker would do, after the steps.")
@option("--each-rack", is_flag=True, help="The same of each rack.")
def what_if(call: Call, source: str, *, each_broker: bool, each_rack: bool, **given: Any) -> None:
    """Show what the controller would do with the cluster in SOURCE: partitions offline, leaders, under min ISR.

    The controller's own rules run on a copy of the image in memory. Nothing is ever written, and no live cluster is
    changed. Steps are taken in the order of the options, and each is shown. A broker is lost as when its session ends:
    the controller fences it. One that starts again registers and is unfenced, after a loss as after a crash. Configs in
    property files, and how far replicas are behind, are not in the log, and do not count.

    The exit code is 1 where the controller refuses a step or a part of one.

    Examples:
        # broker 3 is lost
        kraftlake what-if {SAMPLE} --at 4592 --lose-broker 3
        # and then starts again, and all catch up
        kraftlake what-if {SAMPLE} --at 4592 --lose-broker 3 --restart 3 --catch-up
        # a whole rack is lost
        kraftlake what-if {SAMPLE} --at 4592 --lose-rack rack-0
        # a rolling restart, each broker after the other
        kraftlake what-if {SAMPLE} --at 4592 --catch-up --restart 1 --catch-up --restart 2 --catch-up
        # which single loss takes partitions offline
        kraftlake what-if {SAMPLE} --at 4592 --each-broker --each-rack
        # the same while broker 4 is away
        kraftlake what-if {SAMPLE} --at 4592 --lose-broker 4 --each-broker
        # a reassignment, at its beginning and when all have caught up
        kraftlake what-if {SAMPLE} --at 4592 --reassign moves.json --catch-up
        # for other programs
        kraftlake what-if {SAMPLE} --at 4592 --lose-broker 3 --json
    """
    steps = list(_steps(given_parameters(click.get_current_context()), given))
    if not (steps or each_broker or each_rack):
        raise click.UsageError(
            "Say what would happen: --lose-broker, --lose-rack, --restart, --reassign or --catch-up; or ask for "
            "--each-broker or --each-rack."
        )
    if steps and (each_broker or each_rack) and call.output in (CSV, MARKDOWN):
        raise click.UsageError(f"{call.output} has the rows of one table: ask for steps, or for --each-… alone.")
    opened = call.open(source)
    image = call.replay(opened, call.at).image
    from kraftlake.diagnosis.trial.what_if import what_if

    answer = what_if(image, steps, each_broker=each_broker, each_rack=each_rack)
    if not call.answered(answer.to_json(), standings_of):
        from kraftlake.cli.views.what_if_view import show_what_if

        show_what_if(call.terminal, answer)
    if answer.refused:
        raise click.exceptions.Exit(1)


def _steps(order: list[str], given: Mapping[str, Any]) -> Iterator[Step]:
    """The steps in the order of their options."""
    from kraftlake.diagnosis.trial.steps import Step, StepKind

    values = {name: iter(value) for name, value in given.items() if name != "catch_up"}
    for name in order:
        if name == "catch_up":
            yield Step(kind=StepKind.CATCH_UP)
        elif name in values:
            value = next(values[name])
            match name:
                case "reassign":
                    yield Step.parse(f"reassign {value}")
                case "lose_rack":
                    yield Step(kind=StepKind.LOSE_RACK, racks=value)
                case _:
                    yield Step(kind=StepKind(name.replace("_", "-")), brokers=value)
