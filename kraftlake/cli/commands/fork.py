"""`kraftlake fork`: a controlled copy of a log."""

from __future__ import annotations

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument
from kraftlake.cli.options.parameters import LAKE
from kraftlake.cli.options.shared import command
from kraftlake.cli.views.reports import show_fork_report


@command("Copy a log up to an offset into a lake that a controller may go on with.", replays=False, at=True)
@argument("lake", type=LAKE, metavar="DST", help="The folder of the new lake, or an s3:// URI.")
def fork(call: Call, source: str, lake: str) -> None:
    """Make DST a controlled lake that holds the log of SOURCE up to and including an offset, by default all of it.

    An imported lake takes nothing but imports: one record of another writer would spoil every later one. Its fork is
    written by a controller. The offset is the last one of a batch; SOURCE stays as it is.

    Examples:
        # what if it had gone on otherwise from there
        kraftlake fork {SAMPLE} what-if --at-offset 4592
    """
    from kraftlake.replay.imports.fork import fork_source

    report = fork_source(call.open(source), lake, call.at).to_json()
    if report["uncommitted"]:
        call.terminal.warn(
            f"{source} does not show that its last {report['uncommitted']} records below offset "
            f"{report['endOffset']} were committed; the fork takes them as they are"
        )
    call.answer(report, show_fork_report)
