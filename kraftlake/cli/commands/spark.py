"""`kraftlake spark`: jobs that run on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import Argument, Command, Group, Option, argument, option
from kraftlake.cli.options.observing import metrics_at, metrics_parameters
from kraftlake.cli.options.parameters import LAKE, MOMENT, CountParameter
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import lakes_of
from kraftlake.cli.output.progress import progress_bars
from kraftlake.cli.output.theme import Style
from kraftlake.cli.views.reports import show_lakes, show_run, show_snapshot
from kraftlake.runtime.process_setup import configure_process
from kraftlake.runtime.words import counted
from kraftlake.tables.jobs import JOBS, REPLAY, Job

if TYPE_CHECKING:
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.runtime.moments import Moment
    from kraftlake.spark_jobs import ReplayListener, StreamResult

_EXAMPLES = """
# everything that is there, then end
kraftlake spark JOB lake
# a thousand records in a micro-batch
kraftlake spark JOB lake --max-records-per-trigger 1000
# go on with what is appended, until interrupted
kraftlake spark JOB lake --trigger 'processing-time=2 seconds'
# the same, with the stream's metrics for Prometheus
kraftlake spark JOB lake --trigger 'processing-time=2 seconds' --metrics 9400
# many lakes, each a task of its own
kraftlake spark JOB lake-1 lake-2 'clusters/*/lake'
"""
_INTERVAL_PREFIX = "processing-time="
_SMALL = 10_000_000
"""The number of records below which one process is quicker than a Spark job on this machine."""


@click.group(
    "spark",
    cls=Group,
    short_help="Run a Spark job over a lake.",
)
def spark() -> None:
    """Run a Spark job over a lake. Each starts a JVM unless there is nothing to do, and needs Java 17 or newer.

    Executors make the tables, so that a job grows with the cluster that it is given. No other command starts a JVM:
    `kraftlake tables LAKE` makes the same tables in this process, which for one cluster's log is usually enough.

    Examples:
        # replay a lake's log into tables
        kraftlake spark replay lake
        # every derived table, by one stream
        kraftlake spark all lake
        # the tables of every lake in a folder, spread over Spark's executors
        kraftlake spark all lakes
        # a snapshot of a cluster of any size
        kraftlake spark snapshot lake
    """


def _parameters() -> list[click.Parameter]:
    """The arguments and options of all jobs, in the order of their help."""
    return [
        Argument(
            ["lakes"],
            type=LAKE,
            nargs=-1,
            required=True,
            metavar="LAKE...",
            help="The folder of a lake that `kraftlake import` made, or its URI. Of many lakes, also of a folder of "
            "lakes and a quoted pattern ('clusters/*/lake'), each is made by a task of its own on Spark's executors, "
            "up to the end of its log, and the exit code is 1 if one failed.",
        ),
        Option(
            ["--trigger"],
            default="available-now",
            metavar="WHEN",
            show_default=True,
            help="available-now ends when all is replayed; processing-time=INTERVAL goes on until it is interrupted.",
        ),
        Option(
            ["--max-records-per-trigger", "max_records"],
            type=CountParameter(min=1),
            help="How many records of the log a micro-batch takes; all that there are by default, one batch at least.",
        ),
        Option(
            ["--master"],
            metavar="URL",
            help="The Spark cluster that does it, such as spark://HOST:7077; by default this machine alone.",
        ),
        *metrics_parameters("With processing-time: "),
    ]


def _command_of(job: Job) -> Command:
    def run(call: Call, lakes: tuple[str, ...], **options: Any) -> None:
        from kraftlake.metadata_log.lakes import names_many

        if len(lakes) > 1 or names_many(lakes[0]):
            _run_many(job, call, lakes, options)
        else:
            _run(job, call, lakes[0], **options)

    run.__doc__ = f"{job.help}\n\nExamples:\n{_EXAMPLES.replace('JOB', job.name)}"
    made = command(job.question, name=job.name, section="Jobs", source=False, secrets=job is REPLAY)(run)
    made.params[:0] = _parameters()
    return made


def _run(
    job: Job,
    call: Call,
    lake: str,
    *,
    trigger: str,
    max_records: int | None,
    master: str | None,
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
) -> None:
    from kraftlake.spark_jobs import StreamOptions, run_job

    address = metrics_at(metrics, insecure=insecure_metrics)
    if address is not None and not trigger.startswith(_INTERVAL_PREFIX):
        raise click.UsageError("--metrics is for a stream that goes on: give --trigger processing-time=INTERVAL.")
    configure_process()
    options = StreamOptions(
        trigger=trigger.removeprefix(_INTERVAL_PREFIX),
        max_records=max_records,
        master=master,
    )
    with _listening(address) as listener, progress_bars(call.terminal) as progress:
        progress("starting", 0, 0)
        result = run_job(
            job.name, lake, options=options, listener=listener,
            on_progress=lambda offset, end: progress("replaying", offset + 1, end),
        )  # fmt: skip
    if result.unwritable:
        call.terminal.warn(f"the newest image has no snapshot: {result.unwritable}")
    _show(job, call, lake, result)
    if result.steps and result.offset - result.base_offset < _SMALL and master is None and call.in_words:
        call.terminal.line(
            (f"`kraftlake tables {lake}` does this without a JVM, and sooner for a log of this size", Style.QUIET)
        )


@contextmanager
def _listening(address: MetricsAddress | None) -> Iterator[ReplayListener | None]:
    """The listener of a stream whose metrics are served within the context; None without an address."""
    if address is None:
        yield None
        return
    from kraftlake.spark_jobs.replay_listener import ReplayListener, stream_metrics

    with stream_metrics(address) as metrics:
        yield ReplayListener(metrics.take)


def _run_many(job: Job, call: Call, lakes: Sequence[str], options: dict[str, Any]) -> None:
    """Update the tables of each lake once, in an executor's task."""
    from kraftlake.spark_jobs import run_lakes

    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        given = name in options and context.get_parameter_source(name) is not ParameterSource.DEFAULT
        if given and name != "master" and options[name] != parameter.default:
            raise click.UsageError(
                f"{parameter.opts[0]} is for one lake: many are brought up to the ends of their logs once, without a "
                "stream. Leave it out, or name one lake."
            )
    with progress_bars(call.terminal) as progress:
        progress("starting", 0, 0)
        result = run_lakes(
            job.name, lakes, master=options["master"], on_progress=lambda done, of: progress("lakes", done, of)
        )
    for run in result.lakes:
        if run.summary is not None and run.summary["unwritable"]:
            call.terminal.warn(f"the newest image of {run.lake} has no snapshot: {run.summary['unwritable']}")
    form = result.to_json()
    if not call.answered(form, lakes_of):
        show_lakes(call.terminal, form)
    if result.failed:
        raise click.ClickException(f"{result.failed} of {counted(len(result.lakes), 'lake')} failed")


def _show(job: Job, call: Call, lake: str, result: StreamResult) -> None:
    summary = result.to_json()
    if job is not REPLAY:
        call.answer(summary, show_run)
        return
    import kraftlake
    from kraftlake.cli.views.image_view import draw_image

    image = result.image.to_json(show_secrets=call.show_secrets) | {"clusterId": kraftlake.open(lake).cluster_id}
    if call.answered({**summary, "localChangeRows": sum(result.rows.values()), "image": image}):
        return
    show_run(call.terminal, summary)
    call.terminal.render(draw_image(image, everything=False))


@command("Fold a log of any size into a snapshot, spread over Spark's executors.", source=False, section="Jobs")
@argument("lake", type=LAKE, help="The folder of a lake that `kraftlake import` made.")
@option(
    "--at",
    "--at-offset",
    "to",
    type=MOMENT,
    help="The last offset that the snapshot holds, or its time; the end of the log by default.",
)
@option(
    "--master",
    default="local[*]",
    metavar="URL",
    show_default=True,
    help="Spark's master. Its executors read and write the lake themselves, so all of them must reach it.",
)
def snapshot(call: Call, lake: str, *, to: Moment | None, master: str) -> None:
    """Fold the log of LAKE up to a moment and keep the image in snapshots/, as every later replay then starts from.

    Goes on from the newest snapshot before that offset. Topics are dealt out by id and folded in parts, so that no
    process holds more than a part of the cluster; what is written are the records that one process would write.

    Examples:
        # of the end of the log
        kraftlake spark snapshot lake
        # of an earlier offset
        kraftlake spark snapshot lake --at-offset 5000000
        # on a cluster
        kraftlake spark snapshot /shared/lake --master spark://host:7077
    """
    from kraftlake.spark_jobs import run_snapshot

    to_offset = to if to is None or isinstance(to, int) else call.open(lake).offset_at(to)
    with progress_bars(call.terminal) as progress:
        progress("folding", 0, 0)
        built = run_snapshot(lake, to_offset, master=master)
    call.answer(built.to_json(), show_snapshot)


for _job in JOBS.values():
    spark.add_command(_command_of(_job))
spark.add_command(snapshot)
