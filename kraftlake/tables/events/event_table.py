"""Rows of `events/` as tables: those of partitions, made by column, and such that were made one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kraftlake.tables.events.table import ENCODED_EVENTS

if TYPE_CHECKING:
    from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
    from kraftlake.tables.events.partition_events import Event

_SCHEMA: Final = ENCODED_EVENTS
_ROWS_OF_A_RUN: Final = 20
"""From how many rows on, on average, runs of rows are joined faster than rows are picked."""


def table_of_events(events: Sequence[Event], deltas: Any, heads: DeltaBoundaries) -> pa.Table:
    """Events that were made one by one; `deltas` (int64) are the numbers of theirs."""
    head = heads.columns(deltas)
    fields = [*_SCHEMA][len(head) :]
    columns = zip(*events, strict=True) if events else ((),) * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays([*head.values(), *arrays], schema=_SCHEMA)


def merged(first: pa.Table, ranks: Any, second: pa.Table, second_ranks: Any) -> pa.Table:
    """The rows of two tables by their ranks (int64, ascending in each), those of the first before equal ones."""
    if not second.num_rows or not first.num_rows:
        return first if not second.num_rows else second
    both = pa.concat_tables([first, second])
    places = np.searchsorted(ranks, second_ranks, side="right")  # how many of the first go before each of the second
    begins = np.flatnonzero(np.diff(places, prepend=-1))
    if len(begins) * _ROWS_OF_A_RUN > both.num_rows:
        order = np.argsort(np.concatenate((ranks, second_ranks)), kind="stable")
        return both.take(pa.array(order))
    parts, done = [], 0
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(places)], strict=True):
        at = int(places[begin])
        parts += [first.slice(done, at - done), second.slice(begin, end - begin)]
        done = at
    return pa.concat_tables([*parts, first.slice(done)]).combine_chunks()
