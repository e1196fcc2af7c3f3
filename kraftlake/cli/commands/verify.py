"""`kraftlake verify`: every check there is."""

from __future__ import annotations

import click

from kraftlake.cli.command import Example
from kraftlake.cli.options import SAMPLE, Call, command
from kraftlake.cli.sections import LOOK


@command(
    "verify",
    section=LOOK,
    replays=False,
    question="Is this log sound, and where is the first fault?",
    examples=(
        Example("every check", f"kraftlake verify {SAMPLE}"),
        Example("for scripts: the exit code says it, 0 sound or 1 not", f"kraftlake verify {SAMPLE} --json"),
    ),
)
def verify(call: Call, source: str) -> None:
    """Check SOURCE in every way there is, and exit with 1 if it is unsound.

    CRCs, gaps, epochs, decoding, replay, references between records, and whether each snapshot equals the replay of
    the log up to it.
    """
    import kraftlake

    with call.progress() as progress:
        report = kraftlake.open(source, cluster_id=call.cluster_id).verify(progress=progress)
    if call.as_json:
        call.terminal.json(report.to_json())
    else:
        from kraftlake.cli.views.verify_view import show_verify_report

        show_verify_report(call.terminal, report.to_json())
    if not report.sound:
        raise click.exceptions.Exit(1)
