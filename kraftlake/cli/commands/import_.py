"""`kraftlake import`: append what a lake does not have yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.command import Example, argument, option
from kraftlake.cli.options.parameters import LAKE, MeasureParameter
from kraftlake.cli.options.shared import MOVE, SAMPLE, Call, command
from kraftlake.cli.views.reports import show_import_report
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.protocol import QuorumClient, QuorumWatch
    from kraftlake.replay import FollowStep

_UPKEEP_SECONDS = 60.0


@command(
    "import",
    section=MOVE,
    question="Append to a lake what it does not have yet of a log.",
    replays=False,
    examples=(
        Example("make a lake, or bring one up to date", f"kraftlake import {SAMPLE} lake"),
        Example("then ask the lake as if it were the log", "kraftlake image lake --at-offset 4592"),
        Example("what was appended, for scripts", f"kraftlake import {SAMPLE} lake --json"),
        Example(
            "keep up with a live node, until interrupted",
            "kraftlake import --follow /var/lib/kafka/__cluster_metadata-0 lake",
        ),
        Example(
            "the same up to the high watermark of the quorum",
            "kraftlake import --follow --quorum localhost:9093 /var/lib/kafka/__cluster_metadata-0 lake",
        ),
        Example(
            "a quorum that wants TLS or a login: the file that Kafka's own tools take",
            "kraftlake import --follow --quorum localhost:9093 --command-config client.properties "
            "/var/lib/kafka/__cluster_metadata-0 lake",
        ),
    ),
)
@argument("lake", type=LAKE, help="The folder of the lake; made if it does not exist.")
@option("--follow", is_flag=True, help="Go on with what the node of this directory writes.")
@option(
    "--include-uncommitted",
    is_flag=True,
    help="With --follow: take every whole batch, also those that a new leader may still replace.",
)
@option(
    "--quorum",
    metavar="HOST:PORT",
    help="With --follow: take what the quorum has committed, by asking these nodes of the cluster, brokers or "
    "controllers (several with commas between them).",
)
@option(
    "--command-config",
    metavar="FILE",
    help="With --quorum: the properties of TLS and the login, as Kafka's own tools take them.",
)
@option(
    "--poll",
    type=MeasureParameter(min=0.01),
    metavar="SECONDS",
    help="With --follow: how often to look, 0.5 if not given.",
)
def import_(
    call: Call,
    source: str,
    lake: str,
    *,
    follow: bool,
    include_uncommitted: bool,
    quorum: str | None,
    command_config: str | None,
    poll: float | None,
) -> None:
    """Append to LAKE what it lacks of SOURCE.

    Importing twice is the same as once. Where SOURCE disagrees with the lake (a gap, another epoch, other bytes, or
    another cluster) the command changes nothing and names the first such offset.

    With --follow it takes what the log itself shows to be committed: up to the newest snapshot or change of leader.
    With --quorum it takes the offsets up to the high watermark as soon as the directory has them, and waits while no
    node answers. With --include-uncommitted it takes everything, and ends at the first offset that a new leader
    replaced.
    """
    if include_uncommitted and quorum:
        raise click.UsageError("--quorum takes what is committed, --include-uncommitted everything: give one of them.")
    if command_config is not None and not quorum:
        raise click.UsageError("--command-config is for the nodes of --quorum: give both.")
    if follow:
        watched = _quorum(call, source, quorum, command_config) if quorum else None
        _follow(call, source, lake, include_uncommitted=include_uncommitted, watched=watched, poll=poll or 0.5)
        return
    if include_uncommitted or quorum or poll is not None:
        raise click.UsageError("--quorum, --include-uncommitted and --poll belong to --follow.")
    from kraftlake.cli.output.progress import progress_bars
    from kraftlake.replay.imports.import_log import import_source

    opened = call.open(source, tell_torn=False)
    with progress_bars(call.terminal) as progress:
        report = import_source(opened, lake, cluster_id=call.cluster_id, progress=progress)
    form = report.to_json()
    if form["torn"]:
        call.terminal.warn(f"{form['torn']}; everything before it is in the lake")
    if form["records"] or form["snapshots"]:
        _warn_unreplayable(call, lake)
    call.answer(form, show_import_report)


def _warn_unreplayable(call: Call, lake: str) -> None:
    """Warn where the lake's log, every byte of which is sound, can't be replayed to its end."""
    import kraftlake
    from kraftlake.runtime.errors import KraftlakeError

    try:
        kraftlake.open(lake).image()
    except KraftlakeError as fault:
        call.terminal.warn(
            f"it is imported as it is, but can't be replayed: {fault} `kraftlake verify {lake}` lists what is wrong"
        )


def _follow(
    call: Call,
    source: str,
    lake: str,
    *,
    include_uncommitted: bool,
    watched: tuple[QuorumClient, QuorumWatch] | None,
    poll: float,
) -> None:
    """Follow until interrupted; the lake's upkeep runs in a thread."""
    import sys

    from kraftlake.metadata_log import Upkeep, UpkeepThread
    from kraftlake.replay import LogFollower

    client, watch = watched or (None, None)
    follower = LogFollower(
        source,
        lake,
        cluster_id=call.cluster_id,
        include_uncommitted=include_uncommitted,
        quorum=None if watch is None else watch.position,
    )
    upkeep: list[UpkeepThread] = []
    late = not include_uncommitted and watch is None

    def tell(step: FollowStep) -> None:
        nonlocal late
        if late:
            call.terminal.warn(
                "only what the log itself shows to be committed is taken, up to the newest snapshot or change of "
                "leader (--quorum HOST:PORT asks the quorum for more)"
            )
            late = False
        if not upkeep and step.committed_to >= 0:
            upkeep.append(UpkeepThread(Upkeep(lake), interval=_UPKEEP_SECONDS))
        _show_step(call, lake, step, include_uncommitted=include_uncommitted)
        sys.stdout.flush()

    with stop_at_signals() as stop:
        try:
            follower.run(tell, poll=poll, stop=stop)
        finally:
            for thread in upkeep:
                thread.close()
            if client is not None:
                client.close()


def _quorum(call: Call, source: str, addresses: str, command_config: str | None) -> tuple[QuorumClient, QuorumWatch]:
    """A client of the quorum of the directory's cluster, to ask what is committed."""
    from kraftlake.protocol import QuorumClient, QuorumWatch, connector_of, parse_addresses

    connect = connector_of(command_config, tell=call.terminal.warn)
    parsed = parse_addresses(addresses)
    cluster_id = call.open(source, tell_torn=False).cluster_id
    if cluster_id is None:
        raise click.UsageError(
            f"No meta.properties beside {source} names its cluster: give --cluster-id, so that the right one is asked."
        )
    client = QuorumClient(parsed, cluster_id=cluster_id, connect=connect)
    return client, QuorumWatch(client, call.terminal.warn)


def _show_step(call: Call, lake: str, step: FollowStep, *, include_uncommitted: bool) -> None:
    """One line for a step."""
    if step.truncated:
        call.terminal.warn(step.truncated)
    if call.as_json:
        call.terminal.json(
            {
                "lake": lake,
                "from": step.from_offset,
                "to": step.to_offset,
                "records": step.records,
                "snapshots": step.snapshots,
                "endOffset": step.end_offset,
                "committedTo": step.committed_to,
                "committed_to": step.committed_to,  # the name that scripts know
                "seenTo": step.seen_to,
            }
        )
        return
    waiting = step.seen_to - step.end_offset
    late = (
        f"; {counted(waiting, 'record')} not known to be committed yet" if waiting and not include_uncommitted else ""
    )
    if step.records:
        what = f"{counted(step.records, 'record')}, offsets {step.from_offset} to {step.to_offset}"
    else:
        what = counted(step.snapshots, "snapshot") if step.snapshots else "nothing new yet"
    call.terminal.line(f"followed  {what}{late}")
