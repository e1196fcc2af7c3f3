"""Events of many partitions at once, found and put into words by compiled code: no Python a partition.

The events are those that `partition_events` makes of the objects. Imports numpy and numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from string import Formatter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlake.image.topics.partition_registration import LeaderRecoveryState
from kraftlake.kernels.event_kinds import LEADER_ELECTED, LEADER_LOST, MOST
from kraftlake.kernels.event_texts import (
    AFTER_SLOT,
    BEFORE_SLOT,
    COME_SLOT,
    GONE_SLOT,
    NO_SLOT,
    write_texts,
)
from kraftlake.kernels.partition_events import find_events, room_for_lists
from kraftlake.runtime import reused_memory
from kraftlake.tables.events.partition_events import JOINT, PARTITION_EVENTS, Event

_SLOTS: Final = {"before": BEFORE_SLOT, "after": AFTER_SLOT, "gone": GONE_SLOT, "come": COME_SLOT, None: NO_SLOT}
_KINDS: Final = [PARTITION_EVENTS[kind] for kind in range(len(PARTITION_EVENTS))]
_LONGEST_NUMBER: Final = 11
_SUBJECT, _BEFORE, _AFTER, _SENTENCE = 1, 7, 8, 9
"""Where the texts of an `Event` are."""


class States(NamedTuple):
    """n partitions, each before and after a change: rows (int32[n, 14], see `kraftlake.image.topics.partition_rows`).

    Their lists lie in them, in `heap`, or in `base_heap`, which comes before that.
    """

    before: Any
    after: Any
    base_heap: Any
    heap: Any


class Partitions(NamedTuple):
    """The same n by the numbers of their topics (int64) and their own (int32).

    The topics' names (uint8) lie between `name_bounds` (int32), by number.
    """

    numbers: Any
    partitions: Any
    names: Any
    name_bounds: Any


class Found(NamedTuple):
    """Events: of which partition each is (int64), which of `kraftlake.kernels.event_kinds` (uint8).

    `sizes` (int32) are the characters that its two sides take at most.
    """

    places: Any
    kinds: Any
    sizes: Any

    @property
    def kind_names(self) -> tuple[list[str], Any]:
        """The kinds as they are called, and the number of each event's among them (int64)."""
        return _numbered([told.kind for told in _KINDS], self.kinds)

    @property
    def field_names(self) -> tuple[list[str], Any]:
        """Likewise what of a partition has changed."""
        return _numbered([told.field for told in _KINDS], self.kinds)

    @property
    def had(self) -> Any:
        """Which of them (bool) tell what was before."""
        return self.kinds != LEADER_ELECTED

    @property
    def has(self) -> Any:
        """Which of them (bool) tell what is from then on."""
        return self.kinds != LEADER_LOST


def _numbered(names: Sequence[str], kinds: Any) -> tuple[list[str], Any]:
    known = list(dict.fromkeys(names))
    return known, np.array([known.index(name) for name in names], np.int64)[kinds]


class Texts(NamedTuple):
    """Four columns of texts: their bytes (uint8), those of row i from the bound i (int32) to the next."""

    subjects: Any
    subject_bounds: Any
    before: Any
    before_bounds: Any
    after: Any
    after_bounds: Any
    sentences: Any
    sentence_bounds: Any

    @classmethod
    def room(cls, rows: int, subjects: int, sides: int, sentences: int) -> Texts:
        """Room for so many rows, and so many bytes in each column."""
        sizes = (subjects, sides, sides, sentences)
        return cls(*(array for size in sizes for array in (reused_memory.empty(size, np.uint8), _bounds(rows))))

    @classmethod
    def of(cls, events: Sequence[Event]) -> Texts:
        """Those of events that were made one by one."""
        columns = [pa.array([event[column] for event in events], pa.string()) for column in _TEXTS]
        return cls(*(part for column in columns for part in bytes_of(column)))

    def arrays(self, had: Any, has: Any) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
        """The columns, with both sides null where these (bool) say that there is nothing."""
        return (
            _strings(self.subjects, self.subject_bounds),
            _strings(self.before, self.before_bounds, had),
            _strings(self.after, self.after_bounds, has),
            _strings(self.sentences, self.sentence_bounds),
        )


_TEXTS: Final = (_SUBJECT, _BEFORE, _AFTER, _SENTENCE)


def bytes_of(strings: pa.Array) -> tuple[Any, Any]:
    """The bytes (uint8) of strings, and where each begins and the last ends in them (int32)."""
    if not len(strings):
        return np.empty(0, np.uint8), np.zeros(1, np.int32)
    _, bounds, data = strings.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return content, np.frombuffer(bounds, np.int32)[strings.offset : strings.offset + len(strings) + 1]


def events_among(states: States, order: Any) -> Found:
    """The events of some partitions (int64) in their order, by their places in that."""
    room = len(order) * MOST
    found = Found(np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(room, np.int32))
    count = find_events(states, order, _work(), found)
    return Found(*(array[:count] for array in found))


def texts_of(states: States, partitions: Partitions, found: Found, singles: Texts) -> Texts:
    """The texts of events, the partitions of which are rows of `states`; where one is -1 - s, those of a single one."""
    rows = found.places
    named = partitions.numbers[rows[rows >= 0]]
    bounds = partitions.name_bounds
    lengths = (bounds[1:] - bounds[:-1])[named]
    subjects = int(lengths.sum()) + len(named) * (_LONGEST_NUMBER + 1) + len(singles.subjects)
    sides = int(found.sizes.sum(dtype=np.int64)) + len(singles.before) + len(singles.after)
    phrases = _phrases()
    sentences = subjects + len(named) * phrases.longest + 2 * sides + len(singles.sentences)
    texts = Texts.room(len(rows), subjects, sides, sentences)
    write_texts(states, _Events(rows, found.kinds), partitions, singles, phrases.given, _work(), texts)
    return texts


class _Events(NamedTuple):
    """Rows to write: see `kraftlake.kernels.event_texts`."""

    rows: Any
    kinds: Any


class _Work(NamedTuple):
    """Room for the lists of two states."""

    lists: Any
    lengths: Any
    lists_after: Any
    lengths_after: Any


class _Given(NamedTuple):
    """The pieces of sentences: see `kraftlake.kernels.event_texts`."""

    data: Any
    pieces: Any
    kind_bounds: Any
    names: Any
    name_bounds: Any
    joint: Any


class _Phrases(NamedTuple):
    """The same, and how much longer than both sides twice and its subject a sentence is at most."""

    given: _Given
    longest: int


@cache
def _phrases() -> _Phrases:
    """Those of all kinds of events, in the order of their numbers."""
    data, pieces, bounds, longest = b"", list[tuple[int, int, int]](), [0], 0
    for told in _KINDS:
        begin = len(data)
        for literal, slot, *_ in Formatter().parse(told.words):
            text = literal.encode()
            pieces.append((len(data), len(data) + len(text), _SLOTS[slot]))
            data += text
        longest = max(longest, len(data) - begin)
        bounds.append(len(pieces))
    states = (LeaderRecoveryState.RECOVERED.name.encode(), LeaderRecoveryState.RECOVERING.name.encode())
    given = _Given(
        data=np.frombuffer(data, np.uint8),
        pieces=np.array(pieces, np.int64),
        kind_bounds=np.array(bounds, np.int64),
        names=np.frombuffer(b"".join(states), np.uint8),
        name_bounds=np.cumsum([0, *map(len, states)], dtype=np.int64),
        joint=np.frombuffer(JOINT.encode(), np.uint8),
    )
    return _Phrases(given, longest + 1 + 2 * len(JOINT))


def _work() -> _Work:
    return _Work(*room_for_lists(), *room_for_lists())


def _bounds(rows: int) -> Any:
    bounds = np.empty(rows + 1, np.int32)
    bounds[0] = 0
    return bounds


def _strings(data: Any, bounds: Any, there: Any = None) -> pa.Array:
    valid = None if there is None or there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [valid, pa.py_buffer(bounds), pa.py_buffer(data[: int(bounds[-1])])]
    return pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers)
