"""`kraftlake removal-check`: what lies on a broker, what its loss would take, and the moves that empty it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import BROKER, OUTPUT
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import list_of


@command("May this broker be removed, and what empties it?", at=True)
@option("--broker", type=BROKER, required=True, help="The broker that is to go.")
@option("-o", "target", type=OUTPUT, help="Write the moves here, for Kafka's tool.")
def removal_check(call: Call, source: str, *, broker: int, target: str | None) -> None:
    """Show what lies on a broker, what its loss would take offline, and a reassignment that empties it.

    Only the broker's own replicas move, each to a place of its own in the list: to an active broker in a rack that the
    partition's other replicas are not in, of these to the one with the fewest replicas. The moves are rehearsed by the
    controller's own rules before they are shown: it accepts them, nothing is left on the broker once the replicas have
    caught up, and no partition is worse off. -o writes them as kafka-reassign-partitions takes them, which moves the
    data; unregister the broker when it is empty and stopped.

    The exit code is 3 where something lies on the broker.

    Examples:
        # what a broker holds, and where it can go
        kraftlake removal-check {SAMPLE} --broker 3 --at 4592
        # the moves, for kafka-reassign-partitions --execute
        kraftlake removal-check {SAMPLE} --broker 3 --at 4592 -o empty-3.json
        # for other programs
        kraftlake removal-check {SAMPLE} --broker 3 --at 4592 --json
    """
    opened = call.open(source)
    with call.suggest_lenient():
        found = opened.removal_check(broker, call.at, lenient=not call.strict)
    if target is not None:
        from kraftlake.runtime.whole_file import write_readable

        write_readable(Path(target), [json.dumps(found.reassignment(), separators=(",", ":")).encode() + b"\n"])
    if not call.answered(found.to_json(), list_of("moves", ("partition", "replicas"))):
        from kraftlake.cli.views.removal_view import show_removal

        show_removal(call.terminal, found, target)
    if not found.is_empty:
        raise click.exceptions.Exit(UNHEALTHY)
