"""Rows of `events/`: those of partitions, made once for each distinct change, and single ones among them.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.replay.log.delta_chunk import DeltaBoundaries
from kraftlake.replay.log.partition_changes import PartitionChanges
from kraftlake.tables.events.distinct_changes import distinct_changes, event_columns
from kraftlake.tables.events.events_table import ENCODED_EVENTS, EVENTS, Event
from kraftlake.tables.events.partition_events import partition_events
from kraftlake.tables.history.history_columns import delta_columns
from kraftlake.tables.row_buffer import table_of_rows

_CHANGES_AT_ONCE: Final = 1 << 17
"""The number of changes at once, small enough for the 31-bit bounds of an array of their texts."""
_OF_EVENTS: Final = pa.schema([*EVENTS.schema][3:])
"""The columns of an Event."""
_OF_TOPICS: Final = ("subject", "topic", "topic_id")
_OF_CHANGES: Final = ("kind", "field", "before", "after", "sentence", "broker")


class SingleEvents(NamedTuple):
    """Events that were made one by one, in their order, with the numbers of their deltas and ranks (int64[n])."""

    events: Sequence[Event]
    deltas: Any
    ranks: Any


def event_rows(changes: PartitionChanges, ranks: Any, singles: SingleEvents, boundaries: DeltaBoundaries) -> pa.Table:
    """The rows (ENCODED_EVENTS) of the events of changed partitions, and of single events, by rank.

    `ranks` (int64[n], ascending) are those of the changes; their events come before single ones of the same rank.
    """
    begins = range(0, max(len(changes), 1), _CHANGES_AT_ONCE)
    cuts = [0, *np.searchsorted(singles.ranks, ranks[begins[1:]]).tolist(), len(singles.events)]
    parts = []
    for number, begin in enumerate(begins):
        part, of_part = slice(begin, begin + _CHANGES_AT_ONCE), slice(cuts[number], cuts[number + 1])
        some = SingleEvents(*(column[of_part] for column in singles))
        parts.append(_rows(changes.take(part), ranks[part], some, boundaries))
    return pa.concat_tables(parts)


def _rows(changes: PartitionChanges, ranks: Any, singles: SingleEvents, boundaries: DeltaBoundaries) -> pa.Table:
    """The rows, each of a topic or a single event, and of an event of a distinct change or of that single event."""
    some, numbers = distinct_changes(changes)
    distinct = changes.take(some)
    events = partition_events(event_columns(distinct, distinct.before), event_columns(distinct, distinct.after))
    which, of_changes = _repeated(events.column("partition").to_numpy(), numbers, len(some))
    topics = pa.array(changes.topics[which]).dictionary_encode()
    names, ids = (strings.take(topics.dictionary) for strings in changes.names[:2])
    order = np.argsort(np.concatenate((ranks[which], singles.ranks)), kind="stable")

    def by_rank(many: Any, few: Any) -> Any:
        return np.concatenate((many, few))[order]

    few = np.arange(len(singles.events))
    heads = by_rank(topics.indices.to_numpy(), len(names) + few)
    tails = by_rank(of_changes, events.num_rows + few)
    is_of_change = pa.array(heads < len(names))
    partitions = pa.array(by_rank(changes.partitions[which], np.zeros_like(few, np.int32)))
    partitions = pc.if_else(is_of_change, partitions, None)
    one_by_one = table_of_rows(singles.events, _OF_EVENTS)
    topics = pa.table([names, names, ids], _OF_TOPICS)
    columns = {
        **delta_columns(boundaries, by_rank(changes.deltas[which], singles.deltas)),
        **_taken((topics, one_by_one.select(_OF_TOPICS)), heads),
        **_taken((events.drop_columns("partition"), one_by_one.select(_OF_CHANGES)), tails),
        "partition": partitions,
    }
    columns["subject"] = pc.binary_join_element_wise(
        columns["subject"], partitions.cast(pa.string()), "-", null_handling="skip"
    )
    columns["sentence"] = pc.binary_join_element_wise(
        pc.if_else(is_of_change, columns["subject"], None), columns["sentence"], " ", null_handling="skip"
    )
    return pa.Table.from_arrays([columns[name] for name in ENCODED_EVENTS.names], schema=ENCODED_EVENTS)


def _taken(tables: Sequence[pa.Table], rows: Any) -> dict[str, pa.Array]:
    """The columns of some rows (int64[n]) of tables, one after the other, as ENCODED_EVENTS has them."""
    table, taken = pa.concat_tables(tables, promote_options="default"), {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        is_encoded = pa.types.is_dictionary(ENCODED_EVENTS.field(name).type)
        taken[name] = (column.dictionary_encode() if is_encoded else column).take(pa.array(rows))
    return taken


def _repeated(events_of: Any, numbers: Any, count: int) -> tuple[Any, Any]:
    """The events of all changes, one change after the other: the change of each (int64), and the event (int64).

    `events_of` (int64, ascending) has the distinct change, of `count`, that each event is of; `numbers` the distinct
    change that each change is.
    """
    sizes = np.bincount(events_of, minlength=count)
    first = np.cumsum(sizes) - sizes
    of_changes = sizes[numbers]
    changes = np.repeat(np.arange(len(numbers)), of_changes)
    begins = np.cumsum(of_changes) - of_changes
    return changes, np.arange(len(changes)) + (first[numbers] - begins)[changes]
