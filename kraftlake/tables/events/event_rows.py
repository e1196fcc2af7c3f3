"""Rows of `events/`: those of partitions, made once for each distinct change, and single ones among them.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.partition_changes import PartitionChanges
from kraftlake.tables.events.distinct_changes import distinct_changes, event_columns
from kraftlake.tables.events.partition_events import partition_events
from kraftlake.tables.events.table import ENCODED_EVENTS, Event
from kraftlake.tables.row_buffer import table_of_rows

_CHANGES_AT_ONCE: Final = 1 << 17
"""Few enough for the 31-bit bounds of an array of their texts."""


class SingleEvents(NamedTuple):
    """Events that were made one by one, in their order, with the numbers of their deltas and ranks (int64[n])."""

    events: Sequence[Event]
    deltas: Any
    ranks: Any


def event_rows(changes: PartitionChanges, ranks: Any, singles: SingleEvents, boundaries: DeltaBoundaries) -> pa.Table:
    """The rows (ENCODED_EVENTS) of the events of partitions that were changed, and of single events, by rank.

    `ranks` (int64[n], ascending) are those of the changes; their events come before single ones of the same rank.
    """
    of_singles = rows_of_singles(singles.events, singles.deltas, boundaries)
    if not len(changes):
        return of_singles
    parts = [
        _rows_of_changes(changes.take(slice(first, first + _CHANGES_AT_ONCE)), boundaries)
        for first in range(0, len(changes), _CHANGES_AT_ONCE)
    ]
    rows = pa.concat_tables([part for part, _ in parts]).unify_dictionaries()
    if not of_singles.num_rows:
        return rows
    which = np.concatenate([which + number * _CHANGES_AT_ONCE for number, (_, which) in enumerate(parts)])
    order = np.argsort(np.concatenate((ranks[which], singles.ranks)), kind="stable")
    return pa.concat_tables([rows, of_singles]).combine_chunks().take(order)


def rows_of_singles(events: Sequence[Event], deltas: Any, boundaries: DeltaBoundaries) -> pa.Table:
    """Rows of events that were made one by one; `deltas` (int64[n]) are the numbers of theirs."""
    head = boundaries.columns(deltas)
    rest = table_of_rows(events, pa.schema([*ENCODED_EVENTS][len(head) :]))
    return pa.Table.from_arrays([*head.values(), *rest.columns], schema=ENCODED_EVENTS)


def _rows_of_changes(changes: PartitionChanges, boundaries: DeltaBoundaries) -> tuple[pa.Table, Any]:
    """The rows of the events of changed partitions, and which change each is of (int64)."""
    some, numbers = distinct_changes(changes)
    distinct = changes.take(some)
    events = partition_events(event_columns(distinct, distinct.before), event_columns(distinct, distinct.after))
    which, of_distinct = _repeated(events.column("partition").to_numpy(), numbers, len(some))
    kind, field, before, after, sentence = (column.combine_chunks() for column in events.columns[1:])
    topics, partitions = pa.array(changes.topics[which]).dictionary_encode(), pa.array(changes.partitions[which])
    names = changes.names.topics.take(topics.dictionary)
    ids = changes.names.ids.take(topics.dictionary)
    subject = pc.binary_join_element_wise(names.take(topics.indices), partitions.cast(pa.string()), "-")
    columns = {
        **boundaries.columns(changes.deltas[which]),
        "kind": kind.dictionary_encode().take(of_distinct),
        "subject": subject,
        "topic": pa.DictionaryArray.from_arrays(topics.indices, names),
        "topic_id": pa.DictionaryArray.from_arrays(topics.indices, ids),
        "partition": partitions,
        "broker": pa.nulls(len(which), pa.int32()),
        "field": field.dictionary_encode().take(of_distinct),
        "before": before.take(of_distinct),
        "after": after.take(of_distinct),
        "sentence": pc.binary_join_element_wise(subject, sentence.take(of_distinct), " "),
    }
    return pa.Table.from_arrays([columns[name] for name in ENCODED_EVENTS.names], schema=ENCODED_EVENTS), which


def _repeated(events_of: Any, numbers: Any, count: int) -> tuple[Any, pa.Array]:
    """The events of all changes, one change after the other: the change of each (int64), and the event (int64).

    `events_of` (int64, ascending) has the distinct change, of `count`, that each event is of; `numbers` the distinct
    change that each change is.
    """
    sizes = np.bincount(events_of, minlength=count)
    first = np.cumsum(sizes) - sizes
    of_changes = sizes[numbers]
    changes = np.repeat(np.arange(len(numbers)), of_changes)
    begins = np.cumsum(of_changes) - of_changes
    return changes, pa.array(np.arange(len(changes)) + (first[numbers] - begins)[changes])
