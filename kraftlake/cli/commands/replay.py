"""`kraftlake replay`: a broker's ReplicaManager, driven through the log."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import BROKER, MOMENT, CountParameter
from kraftlake.cli.options.shared import command, last_option, log_dirs_option, to_option
from kraftlake.cli.output.formats import CSV, MARKDOWN, Table

if TYPE_CHECKING:
    from kraftlake.replica_manager.replay.broker_replay import BrokerReplay
    from kraftlake.runtime.moments import Moment
_COLUMNS = (
    "offset", "recordOffset", "recordType", "action", "partition", "topicId", "leader", "leaderEpoch", "partitionEpoch",
    "isr", "replicas", "previous", "fetcher", "fetchOffset", "directory", "reason",
)  # fmt: skip


@command("What did a broker do, and because of which record?", secrets=True)
@option("--broker", type=BROKER, required=True, help="The broker's id.")
@option(
    "--from",
    "first",
    type=MOMENT,
    help="Begin with what the broker hosts before this offset or time, by default with the start of the log.",
)
@to_option
@last_option
@option("--step", is_flag=True, help="Stop after each delta and take commands.")
@log_dirs_option
@option(
    "--listener",
    metavar="NAME",
    help="The listener at which brokers reach each other, by default the first that all of them have.",
)
@option("--fetchers", type=CountParameter(min=1), default=1, help="num.replica.fetchers, 1 if not given.")
def replay(
    call: Call,
    source: str,
    *,
    broker: int,
    first: Moment | None,
    last: Moment | None,
    step: bool,
    log_dirs: tuple[str, ...],
    listener: str | None,
    fetchers: int,
) -> None:
    """Drive a broker's ReplicaManager through the metadata deltas of SOURCE and show everything that it does.

    Each batch is a delta, a metadata transaction is one. A line says what happened to a partition or a fetcher, and
    the record that it happened because of. What a broker does of its own accord is read from the records that followed:
    a new incarnation is a restart, a log directory that is registered no longer has failed. A broker that was never
    registered hosts nothing, and that is no error. Secrets are met in the images of --step only.

    Examples:
        # what broker 2 did when broker 3 was lost
        kraftlake replay {SAMPLE} --broker 2 --from 403 --to 458
        # one delta at a time, forth and back
        kraftlake replay {SAMPLE} --broker 2 --from 403 --step
        # a broker's folders beside what they should be
        kraftlake replay {SAMPLE} --broker 1 --from 5736 --log-dirs samples/kafka-4.4/log
        # for other programs
        kraftlake replay {SAMPLE} --broker 1 --to 1059 --json
    """
    if step and not call.in_words:
        raise click.UsageError(f"--step is interactive; --output {call.output} is not.")
    if log_dirs and call.output in (CSV, MARKDOWN):
        raise click.UsageError(f"{call.output} has the rows of a replay alone: --log-dirs is for text and json.")
    if step and log_dirs:
        raise click.UsageError("--log-dirs compares at the end, which --step need not reach: give one of them.")
    from kraftlake.replica_manager.logs.log_dirs import check_log_dirs
    from kraftlake.replica_manager.replay.broker_replay import BrokerReplay
    from kraftlake.runtime.log import without_logs

    check_log_dirs(log_dirs)
    with nullcontext() if call.verbose else without_logs():  # it shows all of it itself
        opened = call.open(source)
        check_log_dirs(log_dirs, cluster_id=opened.cluster_id)
        _warn_other_nodes(call, broker, log_dirs)
        driven = BrokerReplay(
            opened,
            broker,
            first,
            last,
            lenient=not call.strict,
            inter_broker_listener=listener,
            num_replica_fetchers=fetchers,
        )
        if first is None and driven.offset >= opened.start_offset:  # else an older snapshot is all of the range
            call.warn_changes_begin(opened, "the replay begins")
        if step:
            from kraftlake.cli.commands.replay_steps import ReplaySteps

            ReplaySteps(call.terminal, driven, show_secrets=call.show_secrets).run()
        elif call.in_words:
            _in_words(call, driven, log_dirs)
        else:
            _as_rows(call, driven, log_dirs)
        call.warn_skipped(driven.skipped)
        if call.in_words:
            _warn_unknown_names(call, driven, listener)


def _as_rows(call: Call, driven: BrokerReplay, log_dirs: tuple[str, ...]) -> None:
    """Write the transitions; as JSON also what holds at the end."""
    from kraftlake.replica_manager.logs.log_dirs import compare_log_dirs
    from kraftlake.replica_manager.replay.transition_json import summary_to_json, transition_to_json

    rows = (
        transition_to_json(transition, cause, step.offset)
        for step in driven.steps()
        for transition, cause in step.transitions
    )
    call.write_rows(Table(_COLUMNS, rows))
    if not call.as_json:
        return
    if log_dirs:
        report = compare_log_dirs(driven.broker.image, driven.broker.broker_id, log_dirs)
        call.answered({"logDirs": report.to_json()})
    call.answered(summary_to_json(driven.broker, driven.to_offset))


def _in_words(call: Call, driven: BrokerReplay, log_dirs: tuple[str, ...]) -> None:
    from kraftlake.cli.views.replay_view import show_broker, show_log_dirs, show_step
    from kraftlake.replica_manager.logs.log_dirs import compare_log_dirs

    for step in driven.steps():
        if step.transitions:
            show_step(call.terminal, step)
    show_broker(call.terminal, driven.broker, driven.to_offset)
    if log_dirs:
        show_log_dirs(call.terminal, compare_log_dirs(driven.broker.image, driven.broker.broker_id, log_dirs))


def _warn_other_nodes(call: Call, broker: int, log_dirs: tuple[str, ...]) -> None:
    """Warn of log directories whose `meta.properties` name another node: the broker's replicas are missing there."""
    from kraftlake.kafka_files.node.meta_properties import find_properties

    for path in log_dirs:
        node_id = find_properties(Path(path)).node_id
        if node_id not in (None, broker):
            call.terminal.warn(f"{path} is a log directory of node {node_id}, not of broker {broker}")


def _warn_unknown_names(call: Call, driven: BrokerReplay, listener: str | None) -> None:
    """Warn of an unknown broker id or listener name."""
    broker, image = driven.broker, driven.broker.image
    if not any(broker.roles()):
        call.warn_unknown_names(image, brokers=[broker.broker_id])
    names = sorted({name for known in image.cluster.brokers.values() for name in known.listeners})
    if listener is not None and names and listener not in names:
        call.terminal.warn(
            f"no broker has a listener {listener} at offset {image.offset}, so nothing is fetched; "
            f"there are {', '.join(names)}"
        )
