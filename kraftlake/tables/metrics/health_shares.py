"""The partitions and replicas that count in a cluster's health by what brokers and configs say. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.topics.row_lists import RowLists
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.partition_row import DIRECTORIES, LEADER, RARE, SHAPE, WIDTH
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges


class Led(NamedTuple):
    """The partitions that a broker leads."""

    broker: int


class Held(NamedTuple):
    """The replicas in a directory of a broker."""

    broker: int
    directory: Uuid


class Short(NamedTuple):
    """The partitions of a topic with a number of replicas in sync that is less than that of all replicas."""

    topic: str
    in_sync: int


HealthKey: TypeAlias = Led | Held | Short
"""Names what is counted; its first field is the broker or the topic that decides whether it is unhealthy."""

_Coded: TypeAlias = tuple[Any, Any, Any]
"""The deltas, the keys as numbers, and the signs: -1 for what was so before a change, 1 for what is so after it."""

_DENSE = 32
"""Codes up to that many times their number are numbered in an array of all."""
_DIRECTORY_COLUMNS = range(DIRECTORIES, DIRECTORIES + WIDTH)


@attrs.frozen(kw_only=True, eq=False)
class HealthShares:
    """The changes of the numbers of partitions and replicas by deltas: int64[n] each.

    The delta number `deltas[i]` changes the number of `keys[numbers[i]]` by `counts[i]`.
    """

    keys: Sequence[HealthKey] = ()
    deltas: Any = attrs.field(factory=lambda: np.empty(0, np.int64))
    numbers: Any = attrs.field(factory=lambda: np.empty(0, np.int64))
    counts: Any = attrs.field(factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of_topics(cls, topics: TopicsImage) -> HealthShares:
        """The partitions and replicas of an image, as of one delta."""
        packed = topics.rows().merged()
        names, directories, stride = packed.table.names, packed.directories, _stride(len(packed.directories))
        places = np.arange(packed.partition_count)
        rows = _Rows(
            states=packed.merged_rows(),
            deltas=np.zeros(len(places), np.int64),
            topics=packed.table.topic_numbers(),
            heaps=(packed.heap, packed.heap[:0]),
            sign=1,
            stride=stride,
        )
        coded = [rows.led(places), rows.held(places), rows.short(places)]
        return cls._of(coded, stride, lambda some: [names[number] for number in some], directories.__getitem__)

    @classmethod
    def of_changes(cls, changes: PartitionChanges) -> HealthShares:
        """The changes of one for each partition and delta: see `PartitionChanges.by_delta`."""
        before, after, names = changes.before, changes.after, changes.names
        had, has = (changes.flags & flag != 0 for flag in (HAD, HAS))
        both = had & has
        same = both & (before[:, 0] == after[:, 0])  # of a row with lists in the heap, all of these
        shapes = before[:, SHAPE] ^ after[:, SHAPE]
        same_lists, same_hosts = same & (shapes == 0), same & (shapes & 0xFF == 0)
        for column in (*range(1, WIDTH), *_DIRECTORY_COLUMNS):
            same_hosts &= before[:, column] == after[:, column]
        same_leader = both & (before[:, LEADER] == after[:, LEADER])
        led, held, short, stride = list[_Coded](), list[_Coded](), list[_Coded](), _stride(len(names.directories))
        for states, there, sign in ((before, had, -1), (after, has, 1)):
            rows = _Rows(
                states=states,
                deltas=changes.deltas,
                topics=changes.topics,
                heaps=changes.heaps,
                sign=sign,
                stride=stride,
            )
            led.append(rows.led(np.flatnonzero(there & ~same_leader)))
            held.append(rows.held(np.flatnonzero(there & ~same_hosts)))
            short.append(rows.short(np.flatnonzero(there & ~same_lists)))
        return cls._of(
            [_joined(led), _joined(held), _joined(short)],
            stride,
            lambda some: names.topics.take(pa.array(some, pa.int64())).to_pylist(),
            lambda number: Uuid.from_string(names.directories[number].as_py()),
        )

    @classmethod
    def _of(
        cls,
        coded: Sequence[_Coded],
        stride: int,
        names: Callable[[list[int]], list[str]],
        directory: Callable[[int], Uuid],
    ) -> HealthShares:
        """The shares of what is coded of Led, Held and Short, in this order."""
        keys, numbers = list[HealthKey](), list[Any]()
        for (_, codes, _), kind in zip(coded, (Led, Held, Short), strict=True):
            distinct, places = _distinct(codes)
            numbers.append(places + len(keys))
            owners, rest = (column.tolist() for column in np.divmod(distinct, stride))
            if kind is Led:
                keys += map(Led, owners)
            elif kind is Held:
                keys += map(Held, owners, map(directory, rest))
            else:
                keys += map(Short, names(owners), rest)
        deltas, _, signs = _joined(coded)
        known = dict[HealthKey, int]()
        once = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)  # a name may come anew
        return cls(keys=[*known], deltas=deltas, numbers=once[np.concatenate(numbers)], counts=signs)

    @classmethod
    def joined(cls, some: Iterable[tuple[HealthShares, Any]]) -> HealthShares:
        """Shares with the numbers that their deltas have in what they make together (int64, by delta)."""
        keys, columns = dict[HealthKey, int](), [(cls().deltas, cls().numbers, cls().counts)]
        for shares, deltas in some:
            numbers = np.array([keys.setdefault(key, len(keys)) for key in shares.keys], np.int64)
            columns.append((deltas[shares.deltas], numbers[shares.numbers], shares.counts))
        joined = _joined(columns)
        return cls(keys=[*keys], deltas=joined[0], numbers=joined[1], counts=joined[2])

    def summed(self) -> HealthShares:
        """The same with at most one change of each key by a delta, and none that changes nothing; sorted by delta."""
        codes = self.deltas * max(1, len(self.keys)) + self.numbers
        distinct, places = np.unique(codes, return_inverse=True)
        counts = np.bincount(places, self.counts, len(distinct)).astype(np.int64)
        some = np.flatnonzero(counts)
        deltas, numbers = np.divmod(distinct[some], max(1, len(self.keys)))
        return HealthShares(keys=self.keys, deltas=deltas, numbers=numbers, counts=counts[some])


@attrs.frozen(kw_only=True, eq=False)
class _Rows:
    """The `states` of partitions as rows, with the deltas and topics of each, all before changes or all after them."""

    states: Any
    deltas: Any
    topics: Any
    heaps: tuple[Any, Any]
    sign: int
    stride: int

    def led(self, places: Any) -> _Coded:
        leaders = self.states[places, LEADER].astype(np.int64)
        some = np.flatnonzero(leaders >= 0)
        return self._coded(places[some], leaders[some] * self.stride)

    def held(self, places: Any) -> _Coded:
        lists = RowLists(self.states[places], *self.heaps)
        bounds, brokers = lists.flat("replicas")
        codes = brokers.astype(np.int64) * self.stride + lists.flat("directories")[1]
        return self._coded(np.repeat(places, np.diff(bounds)), codes)

    def short(self, places: Any) -> _Coded:
        shapes = self.states[places, SHAPE]
        in_sync, replicas = shapes >> 8, shapes & 0xFF
        if len(rare := np.flatnonzero(shapes == RARE)):
            lists = RowLists(self.states[places[rare]], *self.heaps)
            in_sync[rare], replicas[rare] = lists.lengths("isr"), lists.lengths("replicas")
        some = np.flatnonzero(in_sync < replicas)
        return self._coded(places[some], self.topics[places[some]].astype(np.int64) * self.stride + in_sync[some])

    def _coded(self, places: Any, codes: Any) -> _Coded:
        return self.deltas[places], codes, np.full(len(places), self.sign, np.int64)


def _stride(directories: int) -> int:
    """The factor of a broker or topic in a code: more than the number of a directory, or that of replicas in sync."""
    return max(directories, 1 << 8)


def _distinct(codes: Any) -> tuple[Any, Any]:
    """The distinct codes, ascending, and the place of each code among them; without sorting where they are dense."""
    if not len(codes) or codes.min() < 0 or codes.max() > _DENSE * len(codes):
        return np.unique(codes, return_inverse=True)
    places = np.zeros(int(codes.max()) + 1, np.int64)
    places[codes] = 1
    distinct = np.flatnonzero(places)
    places[distinct] = np.arange(len(distinct))
    return distinct, places[codes]


def _joined(some: Sequence[_Coded]) -> _Coded:
    deltas, codes, signs = map(np.concatenate, zip(*some, strict=True))
    return deltas, codes, signs
