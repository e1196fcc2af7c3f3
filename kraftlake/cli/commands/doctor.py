"""`kraftlake doctor`: a health check of a cluster, the worst findings first."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import LENGTH_OF_TIME, OUTPUT, regular_file
from kraftlake.cli.options.shared import command, log_dirs_option, sources_options
from kraftlake.cli.options.witnesses import witness_options
from kraftlake.cli.output.form_rows import FINDING, list_of
from kraftlake.cli.output.formats import MARKDOWN

if TYPE_CHECKING:
    from kraftlake.diagnosis.attribution.witnesses import Witnesses


@command("What is wrong with the cluster, since when, why, and what helps?", source=False, replays=False, at=True)
@sources_options
@log_dirs_option
@option(
    "--window",
    type=LENGTH_OF_TIME,
    default="1h",
    show_default=True,
    help="Count fencings, starts, elections and ISR changes in the last 15m, 2h or 3d before the end of the log, and "
    "compare them with the time before.",
)
@witness_options
@option("--html", type=OUTPUT, help="Write an HTML page too, and replace FILE if it exists.")
def doctor(
    call: Call,
    sources: tuple[str, ...],
    *,
    log_dirs: tuple[str, ...],
    window: timedelta,
    html: str | None,
    witnesses: Witnesses | None,
) -> None:
    """Check a cluster once, and show what is wrong with it by severity.

    The quorum and the soundness of its logs; partitions without a leader, with too few replicas in sync or
    under-replicated, or that one more loss takes offline; log directories that failed or were replaced; reassignments,
    throttles; brokers that are fenced; ids that two processes use in turn; addresses that others can't reach; levels of
    features that nodes hold back; stray folders; of the last hour brokers, replicas and quorums that flap; and of the
    last 24 hours of the log unclean elections, changes of configs and of ACLs. Each finding says since which offset and
    time it is so, why, which command shows more, and what helps. Of several sources the furthest
    log is taken; a damaged log is looked at as far as it can be replayed. Of a live quorum it is what was committed,
    and the leader says which voters lag behind or have stopped fetching.

    The exit code is 0 for a healthy cluster, where there is nothing or notes (info) only, 3 where something critical or
    a warning was found, 1 where the state of the cluster is unknown.

    Examples:
        # one look at everything
        kraftlake doctor {SAMPLE}
        # as it was at a moment
        kraftlake doctor {SAMPLE} --at-offset 1400
        # to paste into a ticket
        kraftlake doctor {SAMPLE} --output markdown
        # a page to pass on, which needs nothing else
        kraftlake doctor {SAMPLE} --html report.html
        # what flapped in the last day
        kraftlake doctor {SAMPLE} --window 1d
        # with the folders of a broker
        kraftlake doctor {SAMPLE} --log-dirs samples/kafka-4.4/log
        # who made the changes of the last day, by the authorizer log of the controller
        kraftlake doctor samples/authorized/log/__cluster_metadata-0
        --log-tz UTC --authorizer-log samples/authorized/node-1/kafka-authorizer.log.gz
        # a cluster that runs, by its controllers
        kraftlake doctor c1:9093,c2:9093,c3:9093
        # for other programs: 3 says that something is wrong
        kraftlake doctor {SAMPLE} --json
    """
    from kraftlake.runtime.process_setup import configure_process
    from kraftlake.runtime.whole_file import check_folder_of, write_readable

    target = None if html is None else regular_file(html, "a page")
    if target is not None:
        check_folder_of(target)

    configure_process()
    from kraftlake.diagnosis.doctor.diagnosis import diagnose

    with call.progress() as progress:
        diagnosis = diagnose(
            sources, call.at, log_dirs=log_dirs, cluster_id=call.cluster_id, command_config=call.command_config,
            window=window, progress=progress,
        )  # fmt: skip
    attribution = None if diagnosis.source is None else call.attribution(diagnosis.source, witnesses)
    if attribution is not None:
        from kraftlake.diagnosis.doctor.attributed import with_clients

        diagnosis = with_clients(diagnosis, attribution)
    if diagnosis.unread is not None:
        first, begin = diagnosis.unread
        call.terminal.warn(
            f"what happened is looked at from offset {begin} on: from {first} to there the log has records but no image"
        )
    if target is not None:
        from kraftlake.cli.views.doctor_pages import html_page

        write_readable(target, [html_page(diagnosis).encode()])
    if call.output == MARKDOWN:
        from kraftlake.cli.views.doctor_pages import markdown_page

        for line in markdown_page(diagnosis):
            call.terminal.line(line)
    elif not call.answered(diagnosis.to_json(), list_of("findings", FINDING)):
        from kraftlake.cli.views.doctor_view import show_diagnosis

        show_diagnosis(call.terminal, diagnosis)
    if diagnosis.image is None:
        raise click.exceptions.Exit(1)
    if not diagnosis.is_healthy:
        raise click.exceptions.Exit(UNHEALTHY)
