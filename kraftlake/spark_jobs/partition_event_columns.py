"""Events of many partitions at once: words are made for all that went through the same, or by columns.

The events are those that `partition_events` makes of the objects. Imports numpy and numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.partition_rows import ISR, LEADER, RARE, RECOVERY, SHAPE, WIDTH
from kraftlake.kernels.list_changes import missing_members
from kraftlake.spark_jobs.partition_events import (
    Hosts,
    PartitionEvent,
    elr_events,
    isr_words,
    leader_events,
    recovery_events,
    replica_events,
)
from kraftlake.spark_jobs.row_lists import RowLists


@attrs.frozen(kw_only=True, eq=False)
class PartitionChanges:
    """n partitions, each before and after a change: rows (int32[n, 14], see `kraftlake.image.partition_rows`).

    Their lists lie in them, in `heap`, or in `base_heap`, which comes before that.
    """

    before: Any
    after: Any
    base_heap: Any
    heap: Any

    def lists(self, some: Any) -> RowLists:
        """The lists of some of the partitions before the change, then those of the same after it."""
        rows = np.concatenate((self.before[some], self.after[some]))
        return RowLists(rows, self.base_heap, self.heap)

    def tell(self) -> Any:
        """Which of them (bool[n]) may have an event."""
        before, after = self.before, self.after
        told = (before[:, LEADER] != after[:, LEADER]) | (before[:, RECOVERY] != after[:, RECOVERY])
        return told | _unlike(self, ISR, 0xFF00) | _unlike(self, 0, 0xFF)

    def where(self, chosen: Any) -> PartitionChanges:
        """Those at places that a mask or an array of indices names."""
        return attrs.evolve(self, before=self.before[chosen], after=self.after[chosen])


class StateEvents(NamedTuple):
    """Events in the order of partitions, and of `partition_events` for each: their columns, all of one length.

    `kind` and `field` are dictionaries, the other texts strings. `changes` (int64) are the numbers of the partitions,
    `words` the sentences without the partition in front.
    """

    changes: Any
    kind: pa.Array
    field: pa.Array
    before: pa.Array
    after: pa.Array
    words: pa.Array


def state_events(changes: PartitionChanges) -> StateEvents:
    """The events of partitions."""
    groups = (
        _of_numbers(changes, LEADER, leader_events),
        _of_numbers(changes, RECOVERY, recovery_events),
        _of_isrs(changes),
        _of_elrs(changes),
        _of_hosts(changes),
    )
    ranked = np.concatenate([group.changes * len(groups) + rank for rank, group in enumerate(groups)])
    order = np.argsort(ranked, kind="stable")
    taken = pa.array(order)
    columns = [pa.concat_arrays([group[part] for group in groups]).take(taken) for part in range(1, 6)]
    return StateEvents(ranked[order] // len(groups), *columns)


def _unlike(changes: PartitionChanges, first: int, lengths: int) -> Any:
    """Where the lists whose members begin at column `first` may differ; `lengths` is their part of the shape."""
    before, after = changes.before, changes.after
    unlike = ((before[:, SHAPE] ^ after[:, SHAPE]) & lengths) != 0
    unlike |= (before[:, SHAPE] == RARE) | (after[:, SHAPE] == RARE)
    for column in range(first, first + WIDTH):
        unlike |= before[:, column] != after[:, column]
    return unlike


def _of_numbers(
    changes: PartitionChanges, column: int, make: Callable[[int, int], Iterator[PartitionEvent]]
) -> StateEvents:
    some = np.flatnonzero(changes.before[:, column] != changes.after[:, column])
    pairs = _pairs(changes.before[some, column], changes.after[some, column])
    return _alike(some, pairs, lambda pair: next(make(*_numbers(pair)), None))


def _of_isrs(changes: PartitionChanges) -> StateEvents:
    some = np.flatnonzero(_unlike(changes, ISR, 0xFF00))
    count = len(some)
    bounds, members = changes.lists(some).flat("isr")
    missing = np.empty(len(members), np.uint8)
    missing_members(bounds, members, count, missing)
    so_far = np.zeros(len(members) + 1, np.int32)
    np.cumsum(missing, out=so_far[1:])
    unlike = _Coded.of(so_far[bounds], members[missing != 0])
    prefixes = _alike(
        some,
        _pairs(unlike.codes[:count], unlike.codes[count:]),
        lambda pair: _isr_event(*unlike.lists(pair)),
    )
    texts = _texts(bounds, members)
    before, after = texts.slice(0, count), texts.slice(count)
    if len(prefixes.changes) < count:
        told = pa.array(np.searchsorted(some, prefixes.changes))
        before, after = before.take(told), after.take(told)
    words = pc.binary_join_element_wise(prefixes.words, before, " → ", after, "")
    return prefixes._replace(before=before, after=after, words=words)


def _isr_event(gone: Sequence[int], come: Sequence[int]) -> PartitionEvent | None:
    kind, words = isr_words(gone, come)
    return None if kind is None else PartitionEvent(kind, "isr", None, None, words)


def _of_elrs(changes: PartitionChanges) -> StateEvents:
    some = np.flatnonzero((changes.before[:, SHAPE] == RARE) | (changes.after[:, SHAPE] == RARE))
    elrs = _Coded.of(*changes.lists(some).flat("elr"))
    before, after = elrs.codes[: len(some)], elrs.codes[len(some) :]
    unlike = before != after
    return _alike(
        some[unlike],
        _pairs(before[unlike], after[unlike]),
        lambda pair: next(elr_events(*elrs.lists(pair)), None),
    )


def _of_hosts(changes: PartitionChanges) -> StateEvents:
    some = np.flatnonzero(_unlike(changes, 0, 0xFF))
    lists, count = changes.lists(some), len(some)
    coded = [_Coded.of(*lists.flat(name)) for name in ("replicas", "adding_replicas", "removing_replicas")]
    codes = np.stack([side for one in coded for side in (one.codes[:count], one.codes[count:])], axis=1)
    unlike = (codes[:, ::2] != codes[:, 1::2]).any(axis=1)
    some, codes = some[unlike], np.ascontiguousarray(codes[unlike], np.int32)

    replicas, adding, removing = (one.list_of for one in coded)

    def event(pattern: bytes) -> PartitionEvent | None:
        had, has, added, adds, removed, removes = memoryview(pattern).cast("i")
        before = Hosts(replicas(had), adding(added), removing(removed))
        return next(replica_events(before, Hosts(replicas(has), adding(adds), removing(removes))), None)

    keys = pa.Array.from_buffers(pa.binary(codes.itemsize * 6), len(some), [None, pa.py_buffer(codes)])
    return _alike(some, keys, event)


def _alike(changes: Any, patterns: pa.Array, make: Callable[[Any], PartitionEvent | None]) -> StateEvents:
    """The events of changes (int64[n]), made once for each of their `patterns`; None is no event."""
    encoded = patterns.dictionary_encode()
    made = [make(pattern) for pattern in encoded.dictionary.to_pylist()]
    pattern_of = encoded.indices
    if None in made:
        told = np.flatnonzero(np.array([event is not None for event in made], np.bool_)[pattern_of.to_numpy()])
        changes, pattern_of = changes[told], pattern_of.take(pa.array(told))
    kind, field, *others = (
        pa.array([None if event is None else event[part] for event in made], pa.string()) for part in range(5)
    )
    return StateEvents(
        changes,
        _as_dictionary(kind, pattern_of),
        _as_dictionary(field, pattern_of),
        *(o.take(pattern_of) for o in others),
    )


def _as_dictionary(texts: pa.Array, which: pa.Array) -> pa.DictionaryArray:
    """Some of texts, of which many are the same."""
    encoded = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(which), encoded.dictionary)


def _pairs(first: Any, second: Any) -> pa.Array:
    """Pairs of int32 numbers as one number each."""
    return pa.array((first.astype(np.int64) << 32) | (second.astype(np.int64) & 0xFFFFFFFF))


def _numbers(pair: int) -> tuple[int, int]:
    """The numbers of a pair."""
    return pair >> 32, ((pair & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


class _Coded(NamedTuple):
    """Lists by number: `codes` (int32[n]), and the lists that these are for, as bytes until somebody looks."""

    codes: Any
    known: list[bytes | tuple[int, ...]]

    @classmethod
    def of(cls, bounds: Any, members: Any) -> _Coded:
        """Lists i with the members[bounds[i]:bounds[i + 1]]."""
        buffers = [None, pa.py_buffer((bounds * 4).astype(np.int32)), pa.py_buffer(members)]
        encoded = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers).dictionary_encode()
        return cls(encoded.indices.to_numpy(), encoded.dictionary.to_pylist())

    def list_of(self, code: int) -> tuple[int, ...]:
        """The list that a code is for."""
        known = self.known[code]
        if isinstance(known, bytes):
            known = self.known[code] = tuple(memoryview(known).cast("i").tolist())
        return known

    def lists(self, pair: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lists that a pair of codes is for."""
        first, second = _numbers(pair)
        return self.list_of(first), self.list_of(second)


def _texts(bounds: Any, members: Any) -> pa.Array:
    """`[1, 2, 3]` of each list."""
    brokers = pa.array(members).dictionary_encode()
    words = brokers.dictionary.cast(pa.string()).take(brokers.indices)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), words), ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")
