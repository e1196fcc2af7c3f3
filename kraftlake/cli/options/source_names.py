"""The names in the SOURCE of a command line that is still being written, for completion in the shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kraftlake.cli.selection.known_names import KnownNames


def topics_of(context: click.Context) -> list[str]:
    """The names of the topics that the source has ever had."""
    known = _known(context)
    return [] if known is None else sorted({*known.topics.values()})


def partitions_of(context: click.Context) -> list[str]:
    """The partitions that the source has ever had."""
    known = _known(context)
    if known is None:
        return []
    return sorted(
        f"{known.topics[topic]}-{number}" for topic, most in known.partitions.items() for number in range(most)
    )


def brokers_of(context: click.Context) -> list[str]:
    """The ids of the brokers that the source has ever had."""
    known = _known(context)
    return [] if known is None else [str(broker) for broker in sorted(known.brokers)]


def things_of(context: click.Context) -> list[str]:
    """The paths of the topics, partitions and brokers that the source has ever had."""
    known = _known(context)
    if known is None:
        return []
    partitions = (
        f"topic/{known.topics[topic]}/partition/{number}"
        for topic, most in known.partitions.items()
        for number in range(most)
    )
    return sorted(
        [
            *(f"topic/{name}" for name in {*known.topics.values()}),
            *partitions,
            *(f"broker/{one}" for one in known.brokers),
        ]
    )


def config_names(_: click.Context) -> list[str]:
    """The names of the configs of topics and brokers, as far as a value."""
    from kraftlake.settings.tables import BROKER_CONFIGS
    from kraftlake.settings.topic_configs import TOPIC_CONFIGS

    return [f"{name}=" for name in sorted({*TOPIC_CONFIGS, *BROKER_CONFIGS})]


def _known(context: click.Context) -> KnownNames | None:
    """All names in the source; None without one on this machine: a completion asks no network, and never fails."""
    path = context.params.get("source") or context.params.get("lake")
    if not isinstance(path, str) or not Path(path).exists():
        return None
    from kraftlake.api.source import open_source
    from kraftlake.cli.selection.known_names import KnownNames

    try:
        return KnownNames.of([open_source(path, node=context.params.get("node"))])
    except Exception:  # whatever is wrong with the source, the command itself says it
        return None
