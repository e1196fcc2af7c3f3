"""The events of one published change, by objects: few changes, and whatever can't be taken as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.replay.queries.changes import Published
from kraftlake.tables.events.entry_events import election_event, entry_events
from kraftlake.tables.events.partition_events import Event, topic_events


def change_events(change: Published, *, show_secrets: bool = False) -> Iterator[tuple[Any, ...]]:
    """The rows of `events/` of a change, by what they are of: quorum, topics and partitions, all else.

    The load of a snapshot is no event: it says nothing of when.
    """
    if change.of_snapshot:
        return
    head = (change.offset, change.epoch, change.timestamp)
    if change.elected is not None:
        yield (*head, *election_event(change.elected, change.epoch))
    for event in delta_events(change.delta, change.image, show_secrets=show_secrets):
        yield (*head, *event)


def delta_events(delta: MetadataDelta, after: MetadataImage, *, show_secrets: bool = False) -> Iterator[Event]:
    """The events of a delta, which has led to an image: of topics and partitions, then of all else."""
    if delta.topics_delta is not None:
        yield from topic_events(delta.topics_delta)
    yield from entry_events(delta, after, show_secrets=show_secrets)
