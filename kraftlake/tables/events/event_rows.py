"""Rows of `events/`: those of partitions, made once for each distinct change, and single ones among them.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.kernels import compiled
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
_NO_PARTITION: Final = -1
_NUMBER_SIZE: Final = 11
"""The most bytes of a partition's number in a name, with the hyphen before it."""
_OF_TOPICS: Final = ("subject", "topic", "topic_id")
_OF_CHANGES: Final = ("kind", "field", "before", "after", "sentence", "broker")


class SingleEvents(NamedTuple):
    """Events that were made one by one, in their order, with the numbers of their deltas and ranks (int64[n])."""

    events: Sequence[Event]
    deltas: Any
    ranks: Any


def event_rows(
    changes: PartitionChanges, some: Any, ranks: Any, singles: SingleEvents, boundaries: DeltaBoundaries
) -> pa.Table:
    """The rows (ENCODED_EVENTS) of the events of `some` changed partitions, and of single events, by rank.

    `ranks` (int64[n], ascending) are those of the changes `some` (int64[n]); their events come before single ones of
    the same rank.
    """
    begins = range(0, max(len(some), 1), _CHANGES_AT_ONCE)
    cuts = [0, *np.searchsorted(singles.ranks, ranks[begins[1:]]).tolist(), len(singles.events)]
    parts = []
    for number, begin in enumerate(begins):
        part, of_part = slice(begin, begin + _CHANGES_AT_ONCE), slice(cuts[number], cuts[number + 1])
        few = SingleEvents(*(column[of_part] for column in singles))
        parts.append(_rows(changes, some[part], ranks[part], few, boundaries))
    return pa.concat_tables(parts)


def _rows(
    changes: PartitionChanges, some: Any, ranks: Any, singles: SingleEvents, boundaries: DeltaBoundaries
) -> pa.Table:
    """The rows, each of a topic or a single event, and of an event of a distinct change or of that single event."""
    kinds, numbers = distinct_changes(changes, some)
    distinct = changes.take(some[kinds])
    events = partition_events(event_columns(distinct, distinct.before), event_columns(distinct, distinct.after))
    which, of_changes = _repeated(events.column("partition").to_numpy(), numbers, len(kinds))
    rows = some[which]
    used = np.zeros(len(changes.names.topics), np.bool_)
    used[changes.topics[rows]] = True
    names, ids = (strings.take(pa.array(np.flatnonzero(used))) for strings in changes.names[:2])
    places = np.searchsorted(ranks[which], singles.ranks, side="right")

    def by_rank(many: Any, few: Any) -> Any:
        return np.insert(many, places, few) if len(places) else many

    few = np.arange(len(singles.events), dtype=np.int32)
    heads = by_rank((np.cumsum(used, dtype=np.int32) - np.int32(1))[changes.topics[rows]], len(names) + few)
    tails = by_rank(of_changes.astype(np.int32), events.num_rows + few)
    partitions = by_rank(changes.partitions[rows], np.full_like(few, _NO_PARTITION))
    one_by_one = table_of_rows(singles.events, _OF_EVENTS)
    of_heads = _joined(pa.table([names, names, ids], _OF_TOPICS), one_by_one.select(_OF_TOPICS))
    of_tails = _joined(events.drop_columns("partition"), one_by_one.select(_OF_CHANGES))
    subjects, sentences = _texts(of_heads.pop("subject"), of_tails.pop("sentence"), heads, tails, partitions)
    columns = {
        **delta_columns(boundaries, by_rank(changes.deltas[rows], singles.deltas)),
        **_taken(of_heads, heads),
        **_taken(of_tails, tails),
        "partition": pa.array(partitions, mask=partitions == _NO_PARTITION if len(few) else None),
        "subject": subjects,
        "sentence": sentences,
    }
    return pa.Table.from_arrays([columns[name] for name in ENCODED_EVENTS.names], schema=ENCODED_EVENTS)


def _joined(many: pa.Table, few: pa.Table) -> dict[str, pa.Array]:
    """The columns of two tables, one after the other."""
    table = pa.concat_tables((many, few), promote_options="default")
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _taken(columns: dict[str, pa.Array], rows: Any) -> dict[str, pa.Array]:
    """Some rows (int32[n]) of columns, as ENCODED_EVENTS has them."""
    places, taken = pa.array(rows), {}
    for name, column in columns.items():
        is_encoded = pa.types.is_dictionary(ENCODED_EVENTS.field(name).type)
        taken[name] = (column.dictionary_encode() if is_encoded else column).take(places)
    return taken


def _texts(names: pa.Array, sentences: pa.Array, heads: Any, tails: Any, partitions: Any) -> tuple[pa.Array, pa.Array]:
    """The subjects and the sentences of rows: see the kernel `put_event_texts`."""
    texts = [_content(names), _content(sentences)]
    sizes = [int(np.diff(bounds)[rows].sum()) for (bounds, _), rows in zip(texts, (heads, tails), strict=True)]
    subject_size = sizes[0] + _NUMBER_SIZE * len(heads)
    room = [
        (np.empty(len(heads) + 1, np.int32), np.empty(size, np.uint8))
        for size in (subject_size, subject_size + len(heads) + sizes[1])
    ]
    made = [compiled.TextRoom(*each) for each in room]
    of_names, of_sentences = (compiled.Texts(*each) for each in texts)
    compiled.put_event_texts(of_names, of_sentences, heads, tails, partitions, *made)
    subjects, full_sentences = (pa.StringArray.from_buffers(len(heads), *map(pa.py_buffer, each)) for each in room)
    return subjects, full_sentences


def _content(texts: pa.StringArray) -> tuple[Any, Any]:
    """The bounds (int32[n + 1]) and the bytes (uint8) of texts."""
    _, bounds, data = texts.buffers()
    return np.frombuffer(bounds, np.int32)[texts.offset :], np.frombuffer(data or b"", np.uint8)


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
