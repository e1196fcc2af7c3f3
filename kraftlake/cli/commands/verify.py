"""`kraftlake verify`: all checks of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import PROBLEM, list_of
from kraftlake.cli.views.verify_view import show_verify_report
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.metadata_log.chain import ChainLink


@command("Is this log sound, and where is the first fault?", replays=False)
@option(
    "--at-least",
    metavar="OFFSET[:HASH]",
    help="Fail too where the log does not go to this offset, or its rows up to there have another hash than the one "
    "that `kraftlake import` printed.",
)
@option(
    "--spec",
    is_flag=True,
    help="Judge the log by Kafka's public specifications as well: who may lead, ISRs, epochs, eligible leader "
    "replicas, registrations, features. Exit 1 where a record violates one.",
)
def verify(call: Call, source: str, *, at_least: str | None, spec: bool) -> None:
    """Run all checks on SOURCE, and exit with 1 if it is unsound.

    CRCs, gaps, epochs, decoding, replay, references between records, and whether each snapshot equals the replay of
    the log up to it. In a lake each commit is bound to all rows before it by a chain of hashes, which is checked too;
    only --at-least finds lost commits at the end.

    Examples:
        # every check
        kraftlake verify {SAMPLE}
        # hold a lake to what its import printed
        kraftlake verify lake --at-least 5736:cd40d07087b1f862
        # did the controllers keep to KIP-966 and the like?
        kraftlake verify {SAMPLE} --spec
        # for scripts: the exit code says it, 0 sound or 1 not
        kraftlake verify {SAMPLE} --json
    """
    import kraftlake

    link = None if at_least is None else _link(at_least)
    with call.progress() as progress:
        report = kraftlake.open(source, cluster_id=call.cluster_id).verify(at_least=link, spec=spec, progress=progress)
    form = report.to_json()
    if not call.answered(form, list_of("problems", PROBLEM)):
        show_verify_report(call.terminal, form)
    if not report.sound:
        raise click.exceptions.Exit(1)


def _link(text: str) -> ChainLink:
    from kraftlake.metadata_log.chain import ChainLink

    try:
        return ChainLink.parse(text)
    except UsageError as fault:
        raise click.BadParameter(str(fault), param_hint="--at-least") from None
