"""What happened to topics as a whole, in sentences."""

from __future__ import annotations

from kraftlake.tables.events.table import Event


def topic_created(name: str, topic_id: str, partitions: str) -> Event:
    """The event of a topic that is new; `partitions` are those that it has: see `partitions_in_words`."""
    return _event("topic_created", (name, topic_id), f"is created with {partitions}", after=partitions)


def topic_deleted(name: str, topic_id: str, partitions: str) -> Event:
    """The event of a topic that is gone; `partitions` are those that it had: see `partitions_in_words`."""
    return _event("topic_deleted", (name, topic_id), f"with {partitions} is gone", before=partitions)


def partitions_added(name: str, topic_id: str, count: int, added: int) -> Event:
    """The event of a topic that had `count` partitions and has `added` more."""
    total = count + added
    sides = {"field": "partitions", "before": f"{count}", "after": f"{total}"}
    return _event("partitions_added", (name, topic_id), f"has {total} partitions, {added} more than before", **sides)


def partitions_in_words(count: int, least: int, most: int) -> str:
    """`12 partitions, replication factor 3`; the factors are those of the partitions, if there are any."""
    words = f"{count} partition{'' if count == 1 else 's'}"
    return f"{words}, replication factor {least if least == most else f'{least} to {most}'}" if count else words


def _event(
    kind: str,
    topic: tuple[str, str],
    words: str,
    *,
    field: str | None = None,
    before: str | None = None,
    after: str | None = None,
) -> Event:
    name, topic_id = topic
    return (kind, f"topic {name}", name, topic_id, None, None, field, before, after, f"topic {name} {words}")
