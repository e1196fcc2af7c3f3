"""The `kraftlake` command with all its subcommands."""

from __future__ import annotations

import click

from kraftlake.cli.commands.bisect import bisect
from kraftlake.cli.commands.blame import blame
from kraftlake.cli.commands.broker import broker
from kraftlake.cli.commands.cluster_up import cluster
from kraftlake.cli.commands.controlled.brokers import brokers
from kraftlake.cli.commands.controlled.settings import acls, configs, features, quotas
from kraftlake.cli.commands.controlled.topics import topics
from kraftlake.cli.commands.controller import controller
from kraftlake.cli.commands.diff import diff
from kraftlake.cli.commands.doctor import doctor
from kraftlake.cli.commands.events import events
from kraftlake.cli.commands.export import export
from kraftlake.cli.commands.follow import follow
from kraftlake.cli.commands.fork import fork
from kraftlake.cli.commands.format import format_
from kraftlake.cli.commands.generate import generate
from kraftlake.cli.commands.image import image
from kraftlake.cli.commands.import_ import import_
from kraftlake.cli.commands.local_changes import local_changes
from kraftlake.cli.commands.log import log
from kraftlake.cli.commands.log_upkeep import log_compact, log_trim, log_vacuum
from kraftlake.cli.commands.metrics import metrics
from kraftlake.cli.commands.page import page
from kraftlake.cli.commands.quorum import quorum
from kraftlake.cli.commands.replay import replay
from kraftlake.cli.commands.restore import restore
from kraftlake.cli.commands.shell import cat, ls, shell
from kraftlake.cli.commands.spark import spark
from kraftlake.cli.commands.tables import tables, tables_trim
from kraftlake.cli.commands.verify import verify
from kraftlake.cli.commands.watch import watch
from kraftlake.cli.commands.what_if import what_if
from kraftlake.cli.options.command import Example, Group, Option
from kraftlake.cli.options.shared import SAMPLE


@click.group(
    cls=Group,
    invoke_without_command=True,
    examples=(
        Example("the cluster as the log leaves it", f"kraftlake image {SAMPLE}"),
        Example("what changed between two offsets", f"kraftlake diff {SAMPLE} 4592 4639"),
        Example("into a lake, which keeps what Kafka deletes after a week", f"kraftlake import {SAMPLE} lake"),
    ),
)
@click.version_option(package_name="kraftlake", message="kraftlake %(version)s", cls=Option, help="Print the version.")
@click.pass_context
def application(context: click.Context) -> None:
    """Ask a Kafka cluster's metadata log what the cluster looks like, or looked like at any past moment.

    SOURCE is a Kafka metadata directory (__cluster_metadata-0), a segment or snapshot file of one, an archive of one,
    or a lake that it was imported into; kraftlake finds out which. `kraftlake COMMAND --help` has examples.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), color=context.color)


for _command in (
    doctor,
    image,
    log,
    diff,
    events,
    watch,
    blame,
    bisect,
    page,
    what_if,
    shell,
    ls,
    cat,
    local_changes,
    replay,
    metrics,
    quorum,
    verify,
    import_,
    follow,
    broker,
    export,
    restore,
    format_,
    fork,
    generate,
    log_compact,
    log_trim,
    log_vacuum,
    tables_trim,
    cluster,
    controller,
    brokers,
    topics,
    configs,
    acls,
    quotas,
    features,
    tables,
    spark,
):
    application.add_command(_command)
