"""Events of many partitions at once: one sentence is made for all that went through the same, not one a partition.

What changed without a list in the heap (see `kraftlake.image.partition_rows`) and without other replicas is found by
column; the rest, which is rare, one by one. The rows are those that `partition_events` makes of the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.partition_rows import ISR, LEADER, RARE, RECOVERY, SHAPE, WIDTH, registration_of
from kraftlake.spark_jobs.partition_events import (
    PartitionEvent,
    event_row,
    isr_events,
    leader_events,
    partition_events,
    recovery_events,
)

if TYPE_CHECKING:
    from kraftlake.delta.bulk_change import ChangedRows

Row = tuple[int, ...]


def events_of_rows(changed: ChangedRows, head: tuple[Any, ...], schema: pa.Schema) -> pa.Table:
    """The events of changed partitions by topic and partition; `head` are the columns before `kind`."""
    before, after = changed.before, changed.after
    odd = (before[:, SHAPE] == RARE) | (after[:, SHAPE] == RARE)
    odd |= (before[:, :WIDTH] != after[:, :WIDTH]).any(axis=1) | ((before[:, SHAPE] ^ after[:, SHAPE]) & 0xFF != 0)
    tables = [_one_by_one(changed, np.flatnonzero(odd), head, schema)]
    plain = np.flatnonzero(~odd)
    isr = [*range(ISR, ISR + WIDTH), SHAPE]
    for rank, (columns, make) in enumerate(
        (
            ([LEADER], lambda was, now: leader_events(was[0], now[0])),
            ([RECOVERY], lambda was, now: recovery_events(was[0], now[0])),
            (isr, lambda was, now: isr_events(_members(was), _members(now))),
        )
    ):
        differing = plain[(before[plain][:, columns] != after[plain][:, columns]).any(axis=1)]
        tables.append(_alike(changed, differing, columns, make, head=head, rank=rank, schema=schema))
    rows = pa.concat_tables(tables).sort_by([("topic", "ascending"), ("partition", "ascending"), ("rank", "ascending")])
    return rows.select(schema.names)


def _members(row: Row) -> Row:
    """The ISR of a row's ISR columns and shape."""
    return row[: row[WIDTH] >> 8]


def _ranked(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field("rank", pa.int64()))


def _alike(
    changed: ChangedRows,
    places: Any,
    columns: list[int],
    make: Callable[[Row, Row], Iterator[PartitionEvent]],
    *,
    head: tuple[Any, ...],
    rank: int,
    schema: pa.Schema,
) -> pa.Table:
    """The events of the partitions at `places`, made once for each way in which `columns` of them changed."""
    if not len(places):
        return _ranked(schema).empty_table()
    pairs = np.hstack((changed.before[places][:, columns], changed.after[places][:, columns]))
    patterns, pattern_of = np.unique(pairs, axis=0, return_inverse=True)
    pattern_of = pattern_of.reshape(-1)
    width = len(columns)
    events = [next(make(tuple(p[:width]), tuple(p[width:])), None) for p in patterns.tolist()]
    told = np.array([event is not None for event in events])[pattern_of]
    places, pattern_of = places[told], pattern_of[told]
    made = [event or PartitionEvent("", "", None, None, "") for event in events]
    kind, field, was, now, words = (
        pa.array([event[part] for event in made], pa.string()).take(pa.array(pattern_of)) for part in range(5)
    )
    topics, numbers = _names(changed, places)
    topic = pa.array([changed.table.names[t] for t in topics[0]], pa.string()).take(topics[1])
    topic_id = pa.array([str(changed.table.id_of(t)) for t in topics[0]], pa.string()).take(topics[1])
    subject = pc.binary_join_element_wise(topic, numbers.cast(pa.string()), "-")
    count = len(places)
    values = {
        **{
            field.name: pa.repeat(pa.scalar(value, field.type), count)
            for field, value in zip(list(schema)[: len(head)], head, strict=True)
        },
        "kind": kind,
        "subject": subject,
        "topic": topic,
        "topic_id": topic_id,
        "partition": numbers,
        "broker": pa.nulls(count, pa.int32()),
        "field": field,
        "before": was,
        "after": now,
        "sentence": pc.binary_join_element_wise(subject, words, " "),
        "rank": pa.repeat(pa.scalar(rank, pa.int64()), count),
    }
    wanted = _ranked(schema)
    return pa.Table.from_arrays([values[name] for name in wanted.names], schema=wanted)


def _names(changed: ChangedRows, places: Any) -> tuple[tuple[list[int], pa.Array], pa.Array]:
    """The topics of changed partitions, as a list and places in it, and the partitions' numbers."""
    table, rows = changed.table, changed.numbers[places]
    topic = np.searchsorted(table.starts, rows, side="right") - 1
    numbers = rows - table.starts[topic]
    for sparse, known in table.sparse.items():
        of_it = topic == sparse
        numbers[of_it] = np.array(known, np.int32)[numbers[of_it]]
    topics, topic_of = np.unique(topic, return_inverse=True)
    return (topics.tolist(), pa.array(topic_of.reshape(-1))), pa.array(numbers.astype(np.int32))


def _one_by_one(changed: ChangedRows, places: Any, head: tuple[Any, ...], schema: pa.Schema) -> pa.Table:
    (topics, topic_of), numbers = _names(changed, places)
    rows = []
    for place, topic, number in zip(places.tolist(), topic_of.to_pylist(), numbers.to_pylist(), strict=True):
        states = (
            registration_of(tuple(row[place].tolist()), changed.heap, changed.directories)
            for row in (changed.before, changed.after)
        )
        name, topic_id = changed.table.names[topics[topic]], str(changed.table.id_of(topics[topic]))
        for rank, event in enumerate(partition_events(*states)):
            rows.append((*head, *event_row(event, name, topic_id, number), rank))
    wanted = _ranked(schema)
    columns = zip(*rows, strict=True) if rows else ((),) * len(wanted)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, wanted, strict=True)]
    return pa.Table.from_arrays(arrays, schema=wanted)
