"""The names in the SOURCE of a command line that is still being written, for completion in the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from kraftlake.api.source import Source
    from kraftlake.cli.selection.known_names import KnownNames

_Names = TypeVar("_Names")


def topics_of(context: click.Context) -> list[str]:
    """The names of the topics that the source has ever had."""
    return sorted({*_known(context).topics.values()})


def partitions_of(context: click.Context) -> list[str]:
    """The partitions that the source has ever had."""
    return sorted(f"{topic}-{number}" for topic, number in _partitions(_known(context)))


def brokers_of(context: click.Context) -> list[str]:
    """The ids of the brokers that the source has ever had."""
    return [str(broker) for broker in sorted(_known(context).brokers)]


def things_of(context: click.Context) -> list[str]:
    """The paths of the topics, partitions, brokers and configs that the source has ever had."""
    known = _known(context)
    topics = [f"topic/{name}" for name in {*known.topics.values()}]
    partitions = [f"topic/{topic}/partition/{number}" for topic, number in _partitions(known)]
    without: set[str] = set()
    brokers = [f"broker/{broker}" for broker in known.brokers]
    return sorted([*topics, *partitions, *brokers, *_of_source(context, _config_paths, without)])


def effective_of(context: click.Context) -> list[str]:
    """The paths of the topics and brokers that the source has ever had."""
    known = _known(context)
    return sorted(
        [*(f"topic/{name}" for name in {*known.topics.values()}), *(f"broker/{id_}" for id_ in known.brokers)]
    )


def config_names(_: click.Context) -> list[str]:
    """The names of the configs of topics and brokers, as far as a value."""
    from kraftlake.settings.tables import BROKER_CONFIGS
    from kraftlake.settings.topic_configs import TOPIC_CONFIGS

    return [f"{name}=" for name in sorted({*TOPIC_CONFIGS, *BROKER_CONFIGS})]


def _partitions(known: KnownNames) -> Iterator[tuple[str, int]]:
    """Topics by name, with each number that a partition of theirs has had."""
    for topic_id, most in known.partitions.items():
        for number in range(most):
            yield known.topics[topic_id], number


def _config_paths(source: Source) -> set[str]:
    """The paths of the configs that the source has ever had."""
    from kraftlake.cli.selection.log_names import records_before
    from kraftlake.diagnosis.things import Thing
    from kraftlake.image.configurations_image import ConfigResource
    from kraftlake.records.metadata_records import ConfigRecord

    paths = set()
    for _, data in records_before(source, source.end_offset, {ConfigRecord.API_KEY}):
        resource = ConfigResource(data["resourceType"], data["resourceName"])
        path = Thing("config", (resource, data["name"])).text
        paths.add(path.replace(resource.type_name, resource.type_name.lower(), 1))
    return paths


def _known(context: click.Context) -> KnownNames:
    """All names in the source."""
    from kraftlake.cli.selection.known_names import KnownNames

    return _of_source(context, lambda source: KnownNames.of([source]), KnownNames({}, {}, set()))


def _of_source(context: click.Context, names: Callable[[Source], _Names], without: _Names) -> _Names:
    """Names in the source; `without` one on this machine: a completion asks no network, and never fails."""
    from kraftlake.api.source import open_source

    path = context.params.get("source") or context.params.get("lake")
    if isinstance(path, str) and Path(path).exists():
        with suppress(Exception):  # whatever is wrong with the source, the command itself says it
            return names(open_source(path, node=context.params.get("node")))
    return without
