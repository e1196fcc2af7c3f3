"""`kraftlake format`: a lake for a controller."""

from __future__ import annotations

import click

from kraftlake.cli.command import Argument, Example, Option
from kraftlake.cli.options import Call, command
from kraftlake.cli.parameters import LAKE
from kraftlake.cli.sections import ENGINE


@command(
    "format",
    section=ENGINE,
    question="Make an empty lake for a controller to write its log into.",
    source=False,
    examples=(
        Example("a lake for a new cluster", "kraftlake format cluster"),
        Example(
            "with the id of a cluster that its nodes know", "kraftlake format known --cluster-id MkU3OEVBNTcwNTJENDM2Qg"
        ),
    ),
)
@click.argument("lake", cls=Argument, type=LAKE, help="The folder of the new lake, or an s3:// URI.")
@click.option(
    "--cluster-id", cls=Option, metavar="ID", help="The cluster's id, 22 characters of base64; a new one by default."
)
def format_(call: Call, lake: str) -> None:
    """Make LAKE an empty controlled lake: one whose log a controller writes, and nobody imports into.

    The log is empty until a controller claims its first epoch.
    """
    from kraftlake.cli.views.lake_view import show_formatted
    from kraftlake.metadata_log import MetadataLog
    from kraftlake.records.uuid import Uuid

    cluster_id = call.cluster_id
    if cluster_id is None:
        cluster_id = str(Uuid.random())
    else:
        try:
            Uuid.from_string(cluster_id)
        except ValueError as fault:
            raise click.BadParameter(str(fault), param_hint="--cluster-id") from fault
    log = MetadataLog.create(lake, cluster_id, "controlled")
    report = {"lake": str(log.path), "clusterId": log.cluster_id, "role": log.role}
    if call.as_json:
        call.terminal.json(report)
    else:
        show_formatted(call.terminal, report)
