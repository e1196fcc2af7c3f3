"""Rows of `events/` for many events of partitions, with single ones among them. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.tables.events.partition_event_columns import Found, Partitions, States, Texts, texts_of
from kraftlake.tables.events.partition_events import Event
from kraftlake.tables.events.table import ENCODED_EVENTS

if TYPE_CHECKING:
    from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries

_ROWS_AT_ONCE: Final = 1 << 18
"""How many rows' texts are one array: few enough for its 31-bit bounds."""


class Changed(NamedTuple):
    """Partitions before and after a change, and whose they are; `names` and `ids` (strings) are of topics by number."""

    states: States
    partitions: Partitions
    names: pa.Array
    ids: pa.Array


class Singles(NamedTuple):
    """Events that were made one by one, with the numbers of their deltas (int64).

    `places` (int64, ascending) are how many of the other events come before each.
    """

    events: Sequence[Event]
    deltas: Any
    places: Any

    def column(self, number: int) -> list[Any]:
        """One of their columns."""
        return [event[number] for event in self.events]


def table_of_partitions(
    changed: Changed, found: Found, deltas: Any, singles: Singles, heads: DeltaBoundaries
) -> tuple[pa.Table, Any]:
    """All the rows, and the deltas (int64) of theirs; `found` has the rows of `changed`, `deltas` is by found event."""
    mix = _mixer(len(found.places), singles.places)
    rows = mix(found.places, -1 - np.arange(len(singles.events)))
    deltas = mix(deltas, singles.deltas)
    has_text = [np.array([text is not None for text in singles.column(side)], np.bool_) for side in (7, 8)]
    had, has = mix(found.had, has_text[0]), mix(found.has, has_text[1])
    told = Found(rows, mix(found.kinds, 0), mix(found.sizes, 0))
    texts = _texts(changed, told, singles, had, has)
    kinds, fields = found.kind_names, found.field_names
    used, numbers = _used(changed.partitions.numbers[found.places], len(changed.names))
    names = (changed.names.take(used), numbers)
    ids = (changed.ids.take(used), numbers)
    columns = {
        **heads.columns(deltas),
        "kind": _dictionary(pa.array(kinds[0]), kinds[1], singles.column(0), mix),
        "subject": texts[0],
        "topic": _dictionary(*names, singles.column(2), mix),
        "topic_id": _dictionary(*ids, singles.column(3), mix),
        "partition": _numbers(changed.partitions.partitions[found.places], False, singles.column(4), mix),
        "broker": _numbers(np.zeros(len(found.places), np.int32), True, singles.column(5), mix),
        "field": _dictionary(pa.array(fields[0]), fields[1], singles.column(6), mix),
        "before": texts[1],
        "after": texts[2],
        "sentence": texts[3],
    }
    return pa.Table.from_arrays([columns[name] for name in ENCODED_EVENTS.names], schema=ENCODED_EVENTS), deltas


_Mix = Callable[[Any, Any], Any]
"""One array of values of many events and of few, in the order of the rows."""


def _mixer(count: int, places: Any) -> _Mix:
    at = places + np.arange(len(places))
    many = np.ones(count + len(places), np.bool_)
    many[at] = False

    def mix(values: Any, few: Any) -> Any:
        if not len(at):
            return values
        mixed = np.empty(len(many), values.dtype)
        mixed[many], mixed[at] = values, few
        return mixed

    return mix


def _texts(changed: Changed, told: Found, singles: Singles, had: Any, has: Any) -> list[pa.ChunkedArray]:
    given, chunks = Texts.of(singles.events), []
    for first in range(0, max(len(told.places), 1), _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        part = Found(*(values[some] for values in told))
        chunks.append(texts_of(changed.states, changed.partitions, part, given).arrays(had[some], has[some]))
    return [pa.chunked_array(column) for column in zip(*chunks, strict=True)]


def _used(numbers: Any, count: int) -> tuple[pa.Array, Any]:
    """Which of `count` numbers there are, and by which of these each is (int32)."""
    used = np.zeros(count, np.bool_)
    used[numbers] = True
    among = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return pa.array(np.flatnonzero(used)), among[numbers]


def _dictionary(known: pa.Array, which: Any, few: Sequence[str | None], mix: _Mix) -> pa.DictionaryArray:
    """The texts known[which[i]] and a few others, each of them once in the dictionary."""
    encoded = pa.concat_arrays([known, pa.array(few, pa.string())]).dictionary_encode()
    numbers = encoded.indices.fill_null(-1).to_numpy()
    mixed = mix(numbers[: len(known)][which], numbers[len(known) :])
    return pa.DictionaryArray.from_arrays(_or_null(mixed, mixed < 0), encoded.dictionary)


def _numbers(values: Any, lack: bool, few: Sequence[int | None], mix: _Mix) -> pa.Array:
    """Numbers (int32) and a few others; where they `lack` there are these alone."""
    numbers = pa.array(few, pa.int32())
    lacks = mix(np.full(len(values), lack), numbers.is_null().to_numpy(zero_copy_only=False))
    return _or_null(mix(values, numbers.fill_null(0).to_numpy()), lacks)


def _or_null(values: Any, lacks: Any) -> pa.Array:
    return pa.array(values, mask=lacks if lacks.any() else None)
