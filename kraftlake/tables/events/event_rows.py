"""Rows of `events/`: those of partitions, made once for each distinct change, and single ones among them.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.tables.events.partition_events import partition_events
from kraftlake.tables.events.table import ENCODED_EVENTS, Event

if TYPE_CHECKING:
    from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
    from kraftlake.tables.events.partition_pairs import PartitionPairs

_PAIRS_AT_ONCE: Final = 1 << 17
"""Few enough for the 31-bit bounds of an array of their texts."""


class SingleEvents(NamedTuple):
    """Events that were made one by one, in their order, with the numbers of their deltas and ranks (int64[n])."""

    events: Sequence[Event]
    deltas: Any
    ranks: Any


def event_rows(
    pairs: PartitionPairs, ranks: Any, singles: SingleEvents, boundaries: DeltaBoundaries
) -> tuple[pa.Table, Any]:
    """The rows (ENCODED_EVENTS) of events of partitions and of single ones, and the numbers of their deltas (int64).

    They are by rank, those of partitions before single ones; `ranks` (int64[n], ascending) are those of the pairs.
    """
    of_singles = rows_of_singles(singles.events, singles.deltas, boundaries)
    if not len(pairs):
        return of_singles, singles.deltas
    parts = [
        _rows_of_pairs(pairs.take(np.s_[first : first + _PAIRS_AT_ONCE]), boundaries)
        for first in range(0, len(pairs), _PAIRS_AT_ONCE)
    ]
    rows = pa.concat_tables([part for part, _ in parts]).unify_dictionaries()
    which = np.concatenate([which + number * _PAIRS_AT_ONCE for number, (_, which) in enumerate(parts)])
    deltas, ranks = pairs.deltas[which], ranks[which]
    at = np.searchsorted(ranks, singles.ranks, side="right")
    return merged(rows, ranks, of_singles, singles.ranks), np.insert(deltas, at, singles.deltas)


def rows_of_singles(events: Sequence[Event], deltas: Any, boundaries: DeltaBoundaries) -> pa.Table:
    """Rows of events that were made one by one; `deltas` (int64[n]) are the numbers of theirs."""
    head = boundaries.columns(deltas)
    fields = [*ENCODED_EVENTS][len(head) :]
    columns = zip(*events, strict=True) if events else ((),) * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays([*head.values(), *arrays], schema=ENCODED_EVENTS)


def merged(first: pa.Table, ranks: Any, second: pa.Table, second_ranks: Any) -> pa.Table:
    """The rows of two tables by their ranks (int64, ascending in each), those of the first before equal ones."""
    if not second.num_rows or not first.num_rows:
        return first if not second.num_rows else second
    order = np.argsort(np.concatenate((ranks, second_ranks)), kind="stable")
    return pa.concat_tables([first, second]).combine_chunks().take(order)


def _rows_of_pairs(pairs: PartitionPairs, boundaries: DeltaBoundaries) -> tuple[pa.Table, Any]:
    """The rows of the events of pairs, and which pair each is of (int64)."""
    some, numbers = pairs.distinct_changes()
    changes = pairs.take(some)
    events = partition_events(changes.columns(changes.before), changes.columns(changes.after))
    which, of_change = _repeated(events.column("partition").to_numpy(), numbers, len(some))
    kind, field, before, after, sentence = (column.combine_chunks() for column in events.columns[1:])
    topics, partitions = pa.array(pairs.topics[which]).dictionary_encode(), pa.array(pairs.partitions[which])
    names = pairs.names.take(topics.dictionary)
    subject = pc.binary_join_element_wise(names.take(topics.indices), partitions.cast(pa.string()), "-")
    columns = {
        **boundaries.columns(pairs.deltas[which]),
        "kind": kind.dictionary_encode().take(of_change),
        "subject": subject,
        "topic": pa.DictionaryArray.from_arrays(topics.indices, names),
        "topic_id": pa.DictionaryArray.from_arrays(topics.indices, pairs.ids.take(topics.dictionary)),
        "partition": partitions,
        "broker": pa.nulls(len(which), pa.int32()),
        "field": field.dictionary_encode().take(of_change),
        "before": before.take(of_change),
        "after": after.take(of_change),
        "sentence": pc.binary_join_element_wise(subject, sentence.take(of_change), " "),
    }
    return pa.Table.from_arrays([columns[name] for name in ENCODED_EVENTS.names], schema=ENCODED_EVENTS), which


def _repeated(changes: Any, numbers: Any, count: int) -> tuple[Any, pa.Array]:
    """The events of each pair, one pair after the other: the pair of each (int64), and the event (int64).

    `changes` (int64, ascending) says which of `count` changes each event is of, `numbers` which one a pair is.
    """
    sizes = np.bincount(changes, minlength=count)
    first = np.cumsum(sizes) - sizes
    of_pairs = sizes[numbers]
    pairs = np.repeat(np.arange(len(numbers)), of_pairs)
    begins = np.cumsum(of_pairs) - of_pairs
    return pairs, pa.array(np.arange(len(pairs)) + (first[numbers] - begins)[pairs])
