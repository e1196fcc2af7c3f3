"""The options of commands that follow the directory of a live node, and of the quorum that they may query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import MeasureParameter
from kraftlake.cli.options.shared import Decorator, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from kraftlake.protocol.quorum_client import QuorumClient, QuorumPosition
    from kraftlake.protocol.quorum_watch import QuorumWatch

POLL_SECONDS = 0.5
"""The default of --poll: the time between two checks for new batches."""

ONLY_PROVEN = (
    "only what the log itself shows to be committed is {}, up to the newest snapshot or change of leader "
    "(--quorum HOST:PORT asks the quorum for more)"
)
"""A warning with a placeholder for the verb: shown or taken."""


def following_options(when: str) -> Decorator:
    """The options that say what is committed, and how often to look; `when` begins their help."""
    return together(
        option(
            "--include-uncommitted",
            is_flag=True,
            help=f"{when}take every whole batch, also batches that a new leader may still replace.",
        ),
        option(
            "--quorum",
            metavar="HOST:PORT",
            help=f"{when}take what the quorum has committed, by asking these nodes of the cluster, brokers or "
            "controllers (several with commas between them).",
        ),
        option(
            "--poll",
            type=MeasureParameter(min=0.01),
            metavar="SECONDS",
            help=f"How often to look for more, {POLL_SECONDS} if not given.",
        ),
    )


def check_committed(quorum: str | None, *, include_uncommitted: bool) -> None:
    """Refuse --quorum together with --include-uncommitted."""
    if include_uncommitted and quorum:
        raise click.UsageError("--quorum takes what is committed, --include-uncommitted everything: give one of them.")


def quorum_of(
    addresses: str,
    source: str,
    cluster_id: str | None,
    warn: Callable[[str], None],
    *,
    command_config: str | None = None,
    asked: Callable[[int | None], object] = lambda _: None,
) -> tuple[QuorumClient, QuorumWatch]:
    """A client of the quorum of a directory's cluster, for the committed offset; `warn` reports that it fails.

    `asked` gets the high watermark of each answer, None for each failure.
    """
    from kraftlake.protocol.address import parse_addresses
    from kraftlake.protocol.node_connector import connector_of
    from kraftlake.protocol.node_error import NodeError
    from kraftlake.protocol.quorum_client import QuorumClient
    from kraftlake.protocol.quorum_watch import QuorumWatch

    parsed = parse_addresses(addresses)
    if cluster_id is None:
        raise click.UsageError(
            f"No meta.properties beside {source} names its cluster: give --cluster-id, so that the right one is asked."
        )
    client = QuorumClient(parsed, cluster_id=cluster_id, connect=connector_of(command_config, warn=warn))

    def describe() -> QuorumPosition:
        try:
            found = client.describe()
        except NodeError:
            asked(None)
            raise
        asked(found.high_watermark)
        return found

    return client, QuorumWatch(describe, warn)
