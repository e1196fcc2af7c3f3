"""`kraftlake restore`: log directories for fresh controllers of a cluster that lost its quorum."""

from __future__ import annotations

import re
import sys

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import OUTPUT, CountParameter, ParsedParameter
from kraftlake.cli.options.schemas import warn_left_out
from kraftlake.cli.options.shared import command
from kraftlake.cli.views.restore_view import show_loss, show_restored
from kraftlake.runtime.errors import UsageError


def _voter(value: str) -> tuple[int, str, int]:
    """The node.id, host and port of `ID@HOST:PORT`, which names a controller as in controller.quorum.voters."""
    from kraftlake.protocol.address import parse_addresses

    id_, at, where = value.partition("@")
    if not at or not re.fullmatch(r"[0-9]{1,10}", id_) or int(id_) >= 2**31 or "," in where:
        raise UsageError(f"{value!r} is no controller: give its node.id, host and port as in 1@localhost:9093.")
    (address,) = parse_addresses(where)
    return int(id_), address.host, address.port


@command("Bring a cluster back whose controllers are lost: write log directories for new ones.", replays=False, at=True)
@option("--to", required=True, type=OUTPUT, metavar="DIR", help="The new folder; it gets a folder for each voter.")
@option(
    "--voter",
    "voters",
    type=ParsedParameter("controller", _voter),
    multiple=True,
    required=True,
    metavar="ID@HOST:PORT",
    help="A controller of the new quorum: its node.id, and where it will listen. Repeatable.",
)
@option(
    "--broker-dir",
    "broker_dirs",
    type=OUTPUT,
    multiple=True,
    metavar="DIR",
    help="A log directory (log.dirs) of a broker that is stopped, or a copy of one: its logs show which replicas may "
    "lead. Repeatable; give all of all brokers.",
)
@option(
    "--margin",
    type=CountParameter(min=1, max=2**31 - 1),
    help="How far offsets, epochs and producer ids go above the highest that is known; 1,000,000 if not given.",
)
@option(
    "--kraft-version",
    type=CountParameter(min=0, max=1),
    help="0 for voters that controller.quorum.voters names, 1 for a dynamic quorum; as in the log if not given.",
)
@option("--listener", metavar="NAME", help="The controllers' listener in a dynamic quorum; as in the log if not given.")
@option("--yes", is_flag=True, help="Don't ask.")
def restore(
    call: Call,
    source: str,
    *,
    to: str,
    voters: tuple[tuple[int, str, int], ...],
    broker_dirs: tuple[str, ...],
    margin: int | None,
    kraft_version: int | None,
    listener: str | None,
    yes: bool,
) -> None:
    """Write what fresh controllers need to come up with the state of SOURCE at an offset, by default its last.

    DIR/ID gets a meta.properties and a snapshot for each voter. Its offsets and epochs are above all that SOURCE and
    the brokers' directories show, so that brokers accept it and no follower cuts acknowledged records. Leaders and ISRs
    are not those of the offset: a partition's leader becomes a replica whose log lacks nothing, by --broker-dir, else
    by the newest state known.

    Stop all brokers first: a running one deletes the topics that the restored state does not have. The command prints
    what will be lost, and asks. docs/recovery.md has the steps. DIR holds all secrets.

    Examples:
        # one controller, the cluster as it was at an offset, unasked
        kraftlake restore {SAMPLE} --at-offset 4592 --to restored --voter 1@localhost:9093 --yes
        # three, the cluster at its newest known state, led by the brokers whose logs go furthest
        kraftlake restore lake --to restored --voter 1@c1:9093 --voter 2@c2:9093 --voter 3@c3:9093
        --broker-dir /mnt/b1/data --broker-dir /mnt/b2/data --broker-dir /mnt/b3/data
    """
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("The command can only ask whether to restore in a terminal: give --yes.")
    from kraftlake.replay.restore.restore_files import check_target, write_restore
    from kraftlake.replay.restore.restore_plan import MARGIN, plan_restore

    target = check_target(to)
    with call.progress() as progress:
        plan = plan_restore(
            call.open(source),
            call.at,
            voters=voters,
            broker_dirs=broker_dirs,
            margin=MARGIN if margin is None else margin,
            kraft_version=kraft_version,
            listener=listener,
            progress=progress,
        )
    form = plan.to_json()
    if call.in_words:
        show_loss(call.terminal, form)
        sys.stdout.flush()
    for warning in plan.warnings:
        call.terminal.warn(warning)
    warn_left_out(call.terminal, "the restored snapshot")
    if not yes:
        click.confirm(f"Write controllers' directories for offset {plan.at.offset} to {to}?", abort=True, err=True)
    size = write_restore(plan, target)
    call.answer({"to": to} | form | {"sizeInBytes": size}, show_restored)
