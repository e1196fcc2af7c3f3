"""`kraftlake undo`: a plan that brings a past state of a cluster back."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.commands.undo_apply import apply_options, apply_plan_of
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import MOMENT, PathParameter, regular_file, words_parameter
from kraftlake.cli.options.shared import command, list_option, topics_option
from kraftlake.cli.options.witnesses import witness_options
from kraftlake.cli.output.formats import Table
from kraftlake.runtime.moments import LogTime

if TYPE_CHECKING:
    from datetime import datetime

    from kraftlake.api import Source
    from kraftlake.diagnosis.attribution.attribution import Attribution
    from kraftlake.diagnosis.attribution.witnesses import Witnesses
    from kraftlake.diagnosis.undo.plan import Plan

_KINDS = ("topic", "config", "acl", "quota", "scram", "feature")
_TEXT, _COMMANDS = _WAYS = ("text", "commands")
_COLUMNS = ("step", "class", "action", "path", "field", "before", "after", "undoneAt", "timestamp", "type", "note")


@command("What would bring a past state back?", at=True, secrets=True, long=True)
@option("--to", "then", type=MOMENT, help="The state wanted: after this offset, or at this time.")
@topics_option("Only this topic, its configs and the ACLs on it")
@list_option(
    "--kind",
    "kinds",
    type=words_parameter("kind", _KINDS, "kind of what can be undone"),
    metavar="KIND",
    help=f"Only this: {', '.join(_KINDS)}. Repeatable, or A,B.",
)
@option("--assignments", is_flag=True, help="Also move partitions back to the brokers that they had.")
@option(
    "--throttle",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="With --assignments: what a broker sends or takes in a second for these moves, by default 50000000.",
)
@option("--as", "way", type=click.Choice(_WAYS), default=_TEXT, show_default=True, help="As text, or as commands.")
@option(
    "--plan",
    "file",
    type=PathParameter("file"),
    metavar="FILE",
    help="Write the plan to this file, as JSON; without --to, read it.",
)
@option("--what-if", is_flag=True, help="Take the plan on a copy in memory, as a controller would.")
@witness_options
@apply_options
def undo(
    call: Call,
    source: str,
    *,
    then: int | datetime | LogTime | None,
    topics: tuple[str, ...],
    kinds: tuple[str, ...],
    assignments: bool,
    throttle: int | None,
    way: str,
    file: str | None,
    what_if: bool,
    apply: bool,
    quorum: str | None,
    witnesses: Witnesses | None,
    **applying: Any,
) -> None:
    """Plan the steps that bring the state of SOURCE at --to back, from its last one (or --at).

    Each step says what it changes, from which value to which, and the record that undid it. Its class is safe; access,
    which widens who may do what, or how much; destructive, which deletes a topic, a user or records; partial (a topic
    comes back under a new id without its records, partitions can't become fewer); or impossible (keys of SCRAM users,
    delegation tokens). Secrets are (redacted), in the plan's file too, unless --show-secrets asks for them.

    Nothing is changed unless --apply is given. With it, each step is read before it is taken, and read back; another
    value than the plan's ends the command. Steps of access and destructive ones need their switches, and their names
    typed. After an interruption the same command goes on. At the end the cluster is read back whole: the exit code is 0
    where it equals the state wanted, 3 where something still differs. With --what-if it is 1 where the controller
    refuses a step.

    Examples:
        # what has been done to one topic since an offset
        kraftlake undo {SAMPLE} --to 3000 --topic t-10-k3m
        # the ACLs that were there, as commands of Kafka's own tools
        kraftlake undo {SAMPLE} --to 4000 --kind acl --as commands
        # who did what would be undone, by the authorizer log of the controller
        kraftlake undo samples/authorized/log/__cluster_metadata-0 --to 53
        --log-tz UTC --authorizer-log samples/authorized/node-1/kafka-authorizer.log.gz
        # a plan for later
        kraftlake undo {SAMPLE} --to 4000 --plan plan.json
        # would a controller take it, and what comes out?
        kraftlake undo {SAMPLE} --at 4639 --to 4000 --kind acl,config --what-if
        # the ACLs that a topic had an hour ago, back on the cluster
        kraftlake undo c1:9093 --to now-1h --kind acl --topic orders --apply --access
        # a plan that was written before, over the brokers
        kraftlake undo lake --plan plan.json --apply --on b1:9092 --destructive
    """
    from kraftlake.diagnosis.undo.planning import plan_undo
    from kraftlake.diagnosis.undo.throttle import RATE
    from kraftlake.protocol.address import are_addresses

    if throttle is not None and not assignments:
        raise click.UsageError("--throttle is of partitions that move back: give --assignments, too.")
    if way == _COMMANDS and (apply or what_if):
        raise click.UsageError("--as commands prints a plan: leave --apply and --what-if out.")
    if witnesses is not None and (way == _COMMANDS or apply or what_if):
        raise click.UsageError("Those who made changes are shown in a plan: leave --as, --apply and --what-if out.")
    on = quorum or (source if are_addresses(source) else None)
    if apply and (on is None or what_if):
        raise click.UsageError("--apply needs --on HOST:PORT, brokers or controllers of the cluster, and no --what-if.")
    target = None if file is None else regular_file(file, "a plan")
    opened = call.open(source)
    if then is None:
        plan = _read(target)
    else:
        call.warn_past_end(opened, then)
        with call.suggest_lenient():
            plan = plan_undo(
                opened, opened.offset_at(then), opened.offset_at(call.at),
                topics=topics, kinds=kinds, assignments=assignments, throttle=throttle or RATE, lenient=not call.strict,
            )  # fmt: skip
        if target is not None:
            _write(call, plan, target)
    if what_if:
        _rehearse(call, opened, plan)
    elif apply and on is not None:
        apply_plan_of(call, opened, plan, on, **applying)
    else:
        _show(call, plan, way, call.attribution(opened, witnesses))


def _read(file: Path | None) -> Plan:
    from kraftlake.diagnosis.undo.plan_file import read_plan

    if file is None:
        raise click.UsageError("Give --to, the state that is wanted, or --plan with the file of a plan.")
    return read_plan(file)


def _write(call: Call, plan: Plan, target: Path) -> None:
    from kraftlake.diagnosis.undo.plan_file import write_plan

    write_plan(target, plan, show_secrets=call.show_secrets)
    hidden = any(change.secret for step in plan.steps if "name" in step.subject for change in step.changes)
    if hidden and not call.show_secrets:
        call.terminal.warn(f"{target} has sensitive configs as (redacted): --show-secrets writes them")


def _show(call: Call, plan: Plan, way: str, attribution: Attribution | None) -> None:
    form = plan.to_json(show_secrets=call.show_secrets)
    clients = () if attribution is None else attribution.columns
    if attribution is not None:
        for proof in _proofs(form):
            proof.update(attribution.of(None if proof["type"] is None else proof["offset"]).to_json())
    if call.answered(form, lambda form: Table((*_COLUMNS, *clients), _rows(form, clients))):
        return
    if way == _COMMANDS:
        from kraftlake.diagnosis.undo.tool_commands import script_of

        for line in script_of(step.shown(call.show_secrets) for step in plan.steps):
            sys.stdout.write(f"{line}\n")
        return
    from kraftlake.cli.views.undo_view import show_plan

    show_plan(call.terminal, plan, form)


def _proofs(form: dict[str, Any]) -> list[dict[str, Any]]:
    """The records in a plan that undid the values."""
    changes = [change for step in form["steps"] for change in step["changes"]]
    return [change["undoneBy"] for change in changes if change["undoneBy"] is not None]


def _rows(form: dict[str, Any], clients: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each field that a step changes, with the `clients` of the records that undid them."""
    for number, step in enumerate(form["steps"], 1):
        for change in step["changes"]:
            proof = change["undoneBy"] or {"offset": None, "timestamp": None, "type": None}
            row = {"step": number, **{name: step[name] for name in ("class", "action", "path", "note")}}
            row |= {name: change[name] for name in ("field", "before", "after")}
            row |= {"undoneAt": proof["offset"], "timestamp": proof["timestamp"], "type": proof["type"]}
            yield row | {name: proof.get(name) for name in clients}


def _rehearse(call: Call, source: Source, plan: Plan) -> None:
    from kraftlake.diagnosis.undo.rehearsal import rehearse

    present, past = (call.replay(source, one.offset).image for one in (plan.now, plan.then))
    found = rehearse(plan, present, past)
    form = plan.to_json(show_secrets=call.show_secrets) | {
        "answers": [one.to_json() for one in found.answers],
        "left": found.left.to_json(show_secrets=call.show_secrets),
    }
    if call.in_words:
        from kraftlake.cli.views.undo_view import show_rehearsal

        show_rehearsal(call.terminal, form, found, show_secrets=call.show_secrets)
    else:
        call.answered(form | {"image": found.image.to_json(show_secrets=call.show_secrets)})
    if found.refused:
        raise click.exceptions.Exit(1)
