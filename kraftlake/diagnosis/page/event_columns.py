"""The rows of `events/` as columns in which every text occurs once. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@attrs.frozen(kw_only=True, eq=False)
class EventColumns:
    """Events: by event its moment, the number of its topic and its partition (int64; -1 for none).

    `names` are the names of the topics of events without an id (changes of configs), else null. `tails` are the
    sentences; those of partitions lack the partition's name at the beginning.
    """

    moments: Any
    topics: Any
    names: pa.DictionaryArray
    partitions: Any
    kinds: pa.DictionaryArray
    tails: pa.DictionaryArray

    @classmethod
    def joined(cls, some: Sequence[EventColumns]) -> EventColumns:
        """Events one after the other."""
        none = np.empty(0, np.int64)
        return cls(
            moments=np.concatenate([none, *(one.moments for one in some)]),
            topics=np.concatenate([none, *(one.topics for one in some)]),
            names=joined([one.names for one in some]),
            partitions=np.concatenate([none, *(one.partitions for one in some)]),
            kinds=joined([one.kinds for one in some]),
            tails=joined([one.tails for one in some]),
        )


def events_of(rows: pa.Table, moments: Any, number_of: Callable[[str, str], int]) -> EventColumns:
    """The columns of rows of `events/` at these moments; `number_of` returns a topic's number by its id and name."""
    partitions = rows.column("partition").fill_null(-1).to_numpy().astype(np.int64)
    has_id = pc.is_valid(rows.column("topic_id")).combine_chunks()
    return EventColumns(
        moments=moments,
        topics=_topics(rows, number_of),
        names=pc.if_else(has_id, None, rows.column("topic").cast(pa.string()).combine_chunks()).dictionary_encode(),
        partitions=partitions,
        kinds=_encoded(rows.column("kind")),
        tails=_tails(rows.column("sentence"), rows.column("subject"), partitions >= 0).dictionary_encode(),
    )


def joined(some: Sequence[pa.DictionaryArray]) -> pa.DictionaryArray:
    """Encoded strings one after the other, in one dictionary."""
    none = pa.array([], pa.string()).dictionary_encode()
    return pa.chunked_array([none, *some]).unify_dictionaries().combine_chunks()


def _topics(rows: pa.Table, number_of: Callable[[str, str], int]) -> Any:
    ids, names = _encoded(rows.column("topic_id")), rows.column("topic").cast(pa.string())
    which = ids.indices.fill_null(-1).to_numpy().astype(np.int64)
    first = np.zeros(len(ids.dictionary), np.int64)
    known = np.flatnonzero(which >= 0)
    first[which[known]] = known
    found = zip(ids.dictionary.to_pylist(), names.take(pa.array(first)).to_pylist(), strict=True)
    used = set(which.tolist())
    numbers = [number_of(id_, name) if place in used else -1 for place, (id_, name) in enumerate(found)]
    return np.array([*numbers, -1], np.int64)[which]


def _tails(sentences: pa.ChunkedArray, subjects: pa.ChunkedArray, cut: Any) -> pa.Array:
    """The sentences, without the subject at their beginning where `cut` (bool) is set."""
    texts = _plain(sentences)
    bounds = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = pc.binary_length(_plain(subjects)).to_numpy()
    pieces = np.empty(2 * len(texts) + 1, np.int64)
    pieces[::2] = bounds
    pieces[1::2] = bounds[:-1] + np.where(cut, lengths, 0)
    halves = pa.Array.from_buffers(pa.large_string(), 2 * len(texts), [None, pa.py_buffer(pieces), texts.buffers()[2]])
    return halves.take(pa.array(np.arange(1, 2 * len(texts), 2))).cast(pa.string())


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column of strings as one array with 64-bit bounds."""
    return column.cast(pa.string()).cast(pa.large_string()).combine_chunks()


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks()
