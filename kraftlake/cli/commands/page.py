"""`kraftlake page`: a range of a log as one HTML file to walk through and to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import OUTPUT, regular_file
from kraftlake.cli.options.shared import command, range_options
from kraftlake.cli.options.witnesses import witness_options
from kraftlake.cli.views.reports import show_page_report

if TYPE_CHECKING:
    from kraftlake.diagnosis.attribution.witnesses import Witnesses
    from kraftlake.runtime.moments import Moment


@command("What happened, as a page with a time slider to attach to a ticket?")
@option(
    "-o",
    "--file",
    "file",
    type=OUTPUT,
    required=True,
    help="The file to write; it is replaced if it exists.",
)
@range_options
@witness_options
def page(
    call: Call,
    source: str,
    *,
    file: str,
    first: Moment | None,
    last: Moment | None,
    witnesses: Witnesses | None,
) -> None:
    """Write what happened in a range as one HTML file: the cluster at every moment, to walk through in a browser.

    A slider goes over the moments of the log. Brokers are columns, topics and partitions are rows; leaders, replicas in
    sync and out of it, reassignments and fenced brokers have colours, and curves show how many partitions were offline
    and under-replicated. A click on a partition shows its history. The address names what is shown: cluster.html with
    #at=458&topic=foo opens at offset 458, with that topic selected.

    The file needs no server and no network, and its policy keeps it from using one. Secrets are always redacted.

    Examples:
        # everything in a log
        kraftlake page {SAMPLE} -o cluster.html
        # an incident alone
        kraftlake page {SAMPLE} --from 07:46 --to 07:49 -o incident.html
        # the last two minutes
        kraftlake page {SAMPLE} --last 2m -o last.html
        # with those who made the changes, by the authorizer log of the controller
        kraftlake page samples/authorized/log/__cluster_metadata-0 -o who.html
        --log-tz UTC --authorizer-log samples/authorized/node-1/kafka-authorizer.log.gz
        # of a cluster that runs, by its controllers
        kraftlake page c1:9093,c2:9093 -o cluster.html
    """
    from kraftlake.runtime.whole_file import check_folder_of

    target = regular_file(file, "a page")
    check_folder_of(target)
    opened = call.open(source)
    attribution = call.attribution(opened, witnesses)
    with call.progress() as progress, call.suggest_lenient():
        report = opened.page(target, first, last, lenient=not call.strict, progress=progress, attribution=attribution)
    if first is None:
        call.warn_changes_begin(opened, "the page begins")
    call.answer(report.to_json(), show_page_report)
    call.warn_skipped(report.skipped)
