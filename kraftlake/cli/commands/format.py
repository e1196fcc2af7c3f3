"""`kraftlake format`: a lake for a controller."""

from __future__ import annotations

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import LAKE
from kraftlake.cli.options.shared import command, pairs_option
from kraftlake.cli.views.reports import show_formatted


@command("Make an empty lake for a controller to write its log into.", source=False)
@argument("lake", type=LAKE, help="The folder of the new lake, or an s3:// URI.")
@option("--cluster-id", metavar="ID", help="The cluster's id, 22 characters of base64; a new one by default.")
@option("--release-version", metavar="VERSION", help="Begin as this release would: 4.0, 4.1-IV0; 4.4 by default.")
@pairs_option("--feature", help="Begin with this level of a feature.")
@option(
    "--add-scram",
    multiple=True,
    metavar="MECHANISM=[…]",
    help="A user to begin with: SCRAM-SHA-256=[name=alice]. The password is asked for, or is a line of stdin; what "
    "follows ,password= can be seen by others on this machine. Repeatable.",
)
def format_(
    call: Call, lake: str, *, release_version: str | None, feature: dict[str, str], add_scram: tuple[str, ...]
) -> None:
    """Make LAKE an empty controlled lake: a controller writes its log, and imports into it are refused.

    The log is empty until a controller claims its first epoch; it then begins with the feature levels and users that
    are given here.

    Examples:
        # a lake for a new cluster
        kraftlake format cluster
        # with the id of a cluster that its nodes know
        kraftlake format known --cluster-id MkU3OEVBNTcwNTJENDM2Qg
        # as Kafka 4.0 would, without eligible leader replicas
        kraftlake format older --release-version 4.0 --feature eligible.leader.replicas.version=0
    """
    from kraftlake.cli.options.passwords import password_of
    from kraftlake.controller.access.scram_argument import scram_record
    from kraftlake.controller.cluster.supported_features import version_of_release
    from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, format_lake
    from kraftlake.records.metadata_version import LATEST_PRODUCTION
    from kraftlake.records.uuid import Uuid

    if call.cluster_id is not None:
        try:
            Uuid.from_string(call.cluster_id)
        except ValueError as fault:
            raise click.BadParameter(str(fault), param_hint="--cluster-id") from fault
    version = LATEST_PRODUCTION if release_version is None else version_of_release(release_version)
    levels = {name: _level(level) for name, level in feature.items()}
    bootstrap = BootstrapMetadata.of(version, levels, [scram_record(text, version, password_of) for text in add_scram])
    log = format_lake(lake, bootstrap, cluster_id=call.cluster_id)
    report = {
        "lake": str(log.path),
        "clusterId": log.cluster_id,
        "role": log.role,
        "metadataVersion": str(bootstrap.metadata_version),
    }
    call.answer(report, show_formatted)


def _level(text: str) -> int:
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is no level.", param_hint="--feature")
    return int(text)
