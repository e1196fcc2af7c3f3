"""`kraftlake import`: appends the missing records to a lake."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext, suppress
from typing import TYPE_CHECKING

import click

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.following import ONLY_PROVEN, POLL_SECONDS, check_committed, following_options, quorum_of
from kraftlake.cli.options.observing import metrics_at, metrics_options
from kraftlake.cli.options.parameters import LAKE
from kraftlake.cli.options.shared import command
from kraftlake.cli.views.reports import show_import_report
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from kraftlake.metadata_log.maintenance.upkeep import UpkeepThread
    from kraftlake.replay.imports.follow_log import FollowStep
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.server.observed_lake import ObservedLake

_UPKEEP_SECONDS = 60.0


@command("Append to a lake what it does not have yet of a log.", replays=False)
@argument("lake", type=LAKE, help="The folder of the lake; made if it does not exist.")
@option(
    "--follow",
    is_flag=True,
    help="Go on with what the node of this directory writes, or with what the quorum at HOST:PORT commits.",
)
@following_options("With --follow: ")
@metrics_options("With --follow: ")
def import_(
    call: Call,
    source: str,
    lake: str,
    *,
    follow: bool,
    include_uncommitted: bool,
    quorum: str | None,
    poll: float | None,
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
) -> None:
    """Append to LAKE what it lacks of SOURCE.

    Importing twice is the same as once. Where SOURCE disagrees with the lake (a gap, another epoch, other bytes, or
    another cluster) the command changes nothing and names the first such offset.

    With --follow HOST:PORT it is an observer of the quorum, and takes what is committed as soon as it is; the lake goes
    on where it ends. While no controller answers it waits, and says so. Upkeep of the lake runs beside it.

    With --follow DIRECTORY it takes what the log itself shows to be committed: up to the newest snapshot or change of
    leader. With --quorum it takes the offsets up to the high watermark as soon as the directory has them, and waits
    while no node answers. With --include-uncommitted it takes everything, and ends at the first offset that a new
    leader replaced.

    Examples:
        # make a lake, or bring one up to date
        kraftlake import {SAMPLE} lake
        # then ask the lake as if it were the log
        kraftlake image lake --at-offset 4592
        # what was appended, for scripts
        kraftlake import {SAMPLE} lake --json
        # keep up with a live node, until interrupted
        kraftlake import --follow /var/lib/kafka/__cluster_metadata-0 lake
        # the same up to the high watermark of the quorum
        kraftlake import --follow --quorum localhost:9093 /var/lib/kafka/__cluster_metadata-0 lake
        # with metrics for Prometheus at port 9400 of this machine
        kraftlake import --follow --metrics 9400 localhost:9093 lake
        # keep up with a quorum over the network, as an observer of its controllers
        kraftlake import --follow --command-config client.properties localhost:9093 lake
    """
    check_committed(quorum, include_uncommitted=include_uncommitted)
    address = metrics_at(metrics, insecure=insecure_metrics)
    if address is not None and not follow:
        raise click.UsageError("--metrics belongs to --follow.")
    from kraftlake.protocol.address import are_addresses

    if call.command_config is not None and not quorum and not are_addresses(source):
        raise click.UsageError("--command-config is for HOST:PORT, as SOURCE or with --quorum: give one of them.")
    if follow and are_addresses(source):
        if include_uncommitted or quorum or poll is not None:
            raise click.UsageError(
                f"{source} is a quorum, which says at once what is committed: --quorum, --include-uncommitted and "
                "--poll belong to --follow DIRECTORY."
            )
        _follow_quorum(call, source, lake, address)
        return
    if follow:
        _follow(
            call, source, lake, address, include_uncommitted=include_uncommitted, quorum=quorum,
            poll=poll or POLL_SECONDS,
        )  # fmt: skip
        return
    if include_uncommitted or quorum or poll is not None:
        raise click.UsageError("--quorum, --include-uncommitted and --poll belong to --follow.")
    from kraftlake.cli.output.progress import progress_bars
    from kraftlake.replay.imports.import_log import import_source

    opened = call.open(source, warn_torn=False)
    with progress_bars(call.terminal) as progress:
        report = import_source(opened, lake, cluster_id=call.cluster_id, progress=progress)
    form = report.to_json()
    if form["torn"]:
        call.terminal.warn(f"{form['torn']}; everything before it is in the lake")
    if form["records"] or form["snapshots"]:
        _warn_unreplayable(call, lake)
    call.answer(form, show_import_report)


def _warn_unreplayable(call: Call, lake: str) -> None:
    """Warn where the lake's log has only sound bytes, but can't be replayed to its end."""
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
    metrics: MetricsAddress | None,
    *,
    include_uncommitted: bool,
    quorum: str | None,
    poll: float,
) -> None:
    """Follow a directory until interrupted."""
    from kraftlake.replay.imports.follow_log import LogFollower
    from kraftlake.server.observed_lake import ObservedLake, observed_lake

    client, watch = None, None

    def asked(high_watermark: int | None) -> None:
        if high_watermark is None:
            observed.waits()
        else:
            observed.answered(high_watermark)

    if quorum:
        cluster_id = call.open(source, warn_torn=False).cluster_id
        client, watch = quorum_of(
            quorum, source, cluster_id, call.terminal.warn, command_config=call.command_config, asked=asked
        )
    follower = LogFollower(
        source,
        lake,
        cluster_id=call.cluster_id,
        include_uncommitted=include_uncommitted,
        quorum=None if watch is None else watch.position,
    )
    only_proven = not include_uncommitted and watch is None
    with (
        observed_lake(lake, metrics, ObservedLake.follow) as observed,
        stop_at_signals() as stop,
        nullcontext() if client is None else closing(client),
        closing(
            _Steps(call, lake, observed, include_uncommitted=include_uncommitted, only_proven=only_proven)
        ) as steps,
    ):
        follower.run(steps, poll=poll, stop=stop, observe=observed.saw)


def _follow_quorum(call: Call, addresses: str, lake: str, metrics: MetricsAddress | None) -> None:
    """Follow a quorum until interrupted."""
    from kraftlake.replay.live.follow_quorum import QuorumFollower
    from kraftlake.replay.live.open_quorum import observer_of
    from kraftlake.replay.live.retry_policy import RetryPolicy
    from kraftlake.server.observed_lake import ObservedLake, observed_lake

    def waits(sentence: str) -> None:
        observed.waits()  # until the next answer, which may come at once
        call.terminal.warn(sentence)

    def answered() -> None:
        observed.answered(follower.high_watermark)
        if stop.is_set() and not steps.have_begun:
            raise _StoppedError  # the copy of a log takes long, and there is no lake before it is whole

    observer = observer_of(
        addresses, cluster_id=call.cluster_id, command_config=call.command_config, warn=call.terminal.warn
    )
    with (
        observed_lake(lake, metrics, ObservedLake.follow) as observed,
        stop_at_signals() as stop,
        observer,
        closing(_Steps(call, lake, observed)) as steps,
        suppress(_StoppedError),
    ):
        patience = RetryPolicy(wait=stop.wait, report=waits, answered=answered)
        follower = QuorumFollower(observer, lake, name=addresses, on_append=observed.appended)
        follower.run(steps, patience=patience, stop=stop)


class _StoppedError(Exception):
    """A request to end the command before the first step."""


class _Steps:
    """Shows the steps of a follower, and keeps the lake up in a thread from the first one that has made it."""

    def __init__(
        self,
        call: Call,
        lake: str,
        observed: ObservedLake,
        *,
        include_uncommitted: bool = False,
        only_proven: bool = False,
    ) -> None:
        self._call = call
        self._observed = observed
        self._lake = lake
        self._include_uncommitted = include_uncommitted
        self._only_proven = only_proven
        self._upkeep: UpkeepThread | None = None
        self.have_begun = False

    def __call__(self, step: FollowStep) -> None:
        """Show the next step."""
        from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepThread
        from kraftlake.server.lake_upkeep import LakeUpkeep

        if self._only_proven and not self.have_begun:
            self._call.terminal.warn(ONLY_PROVEN.format("taken"))
        self.have_begun = True
        if self._upkeep is None and step.committed_to >= 0:
            removal = LakeUpkeep(self._lake)
            self._upkeep = UpkeepThread(
                Upkeep(self._lake), interval=_UPKEEP_SECONDS, remove=removal.remove_if_due
            )  # fmt: skip
        if step.committed_to >= 0:
            self._observed.took(step)
        _show_step(self._call, self._lake, step, include_uncommitted=self._include_uncommitted)
        sys.stdout.flush()

    def close(self) -> None:
        """End the upkeep."""
        if self._upkeep is not None:
            self._upkeep.close()


def _show_step(call: Call, lake: str, step: FollowStep, *, include_uncommitted: bool) -> None:
    """Write one line for a step."""
    if step.truncated:
        call.terminal.warn(step.truncated)
    if not call.in_words:
        form = {
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
        call.row_writer.write(form)
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
