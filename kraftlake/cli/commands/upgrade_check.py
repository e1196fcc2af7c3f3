"""`kraftlake upgrade-check`: what refuses an upgrade of a release, of metadata.version or of kraft.version."""

from __future__ import annotations

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import list_of

_COLUMNS = ("check", "refuses", "sentence", "things", "record", "command")


@command("What would refuse an upgrade, and what mends it?", at=True)
@option("--to", "release", metavar="RELEASE", help="A release of Kafka, such as 4.4.")
@option("--metadata-version", metavar="X", help="A metadata.version: its level, 4.4-IV2, or the newest of a release.")
@option("--kraft-version", type=click.IntRange(0, 1), metavar="N", help="A kraft.version: 1 is for dynamic quorums.")
def upgrade_check(
    call: Call, source: str, *, release: str | None, metadata_version: str | None, kraft_version: int | None
) -> None:
    """Show what stands against an upgrade, each obstacle with the record behind it and the command that mends it.

    A level is refused as the active controller refuses it: by brokers and controllers that are registered and do not
    support it, fenced ones too, by voters that have not registered, and by records that a lower level would lose. A
    release (--to) starts only from some metadata.version on, without a migration from ZooKeeper, with features and
    configs that it knows; running nodes of an older release are to be restarted, and refuse nothing. Properties files
    are not in the log. The exit code is 3 where something refuses it.

    Examples:
        # may the nodes get the release 4.4?
        kraftlake upgrade-check {SAMPLE} --to 4.4
        # may metadata.version be raised?
        kraftlake upgrade-check {SAMPLE} --metadata-version 4.4-IV2
        # may the quorum become dynamic?
        kraftlake upgrade-check {SAMPLE} --kraft-version 1
    """
    opened = call.open(source)
    with call.suggest_lenient():
        found = opened.upgrade_check(
            call.at,
            release=release,
            metadata_version=metadata_version,
            kraft_version=kraft_version,
            lenient=not call.strict,
        )
    call.warn_skipped(found.skipped)
    if not call.answered(found.to_json(), list_of("obstacles", _COLUMNS)):
        from kraftlake.cli.views.upgrade_view import show_upgrade

        show_upgrade(call.terminal, found)
    if not found.allowed:
        raise click.exceptions.Exit(UNHEALTHY)
