"""A persistent map from numbers to objects, cheap to change by a few entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Generic, TypeVar

V = TypeVar("V")

GROWTH: Final = 16
"""Number of entries of the first layer, and how many times as many each later layer may have."""


class LayeredMap(Generic[V]):
    """Immutable map in layers: an entry of an earlier layer replaces that of a later one, which is larger.

    A change copies the first layer, and merges a full layer into the next one; maps share the later layers. That takes
    half the time of a hash trie, which touches each child of each node that it copies.
    """

    __slots__ = ("first", "later", "most")
    EMPTY: ClassVar[LayeredMap[Any]]

    def __init__(self, first: Mapping[int, V], later: tuple[Mapping[int, V], ...], most: int) -> None:
        self.first = first
        self.later = later
        self.most = most
        """The number of entries is at most this: replaced ones may count."""

    def get(self, number: int) -> V | None:
        """The object of a number, if it has one."""
        found = self.first.get(number)
        if found is None:
            for layer in self.later:
                found = layer.get(number)
                if found is not None:
                    return found
        return found

    def changed(self, entries: Mapping[int, V]) -> LayeredMap[V]:
        """The map with entries added or replaced; its first layer is empty if that has joined a later one."""
        layer, later = {**self.first, **entries}, self.later
        if len(layer) <= GROWTH:
            return LayeredMap(layer, later, self.most + len(entries))
        joined, none = 0, dict[int, V]()
        while len(layer) > GROWTH ** (joined + 1):
            layer = {**later[joined], **layer} if joined < len(later) else layer
            joined += 1
        later = (*[none] * (joined - 1), layer, *later[joined:])
        return LayeredMap(none, later, sum(map(len, later)))

    def entries(self) -> dict[int, V]:
        """All entries."""
        entries = dict[int, V]()
        for layer in reversed((self.first, *self.later)):
            entries.update(layer)
        return entries

    def unlike(self, other: LayeredMap[V]) -> list[int]:
        """The numbers that have another object, or none, in one of two maps; layers that both have are not compared."""
        numbers = {*self.first, *other.first}
        if self.later is not other.later:
            both = {*map(id, self.later)} & {*map(id, other.later)}
            numbers.update(*(layer for layer in self.later + other.later if id(layer) not in both))
        return [number for number in numbers if self.get(number) is not other.get(number)]


LayeredMap.EMPTY = LayeredMap({}, (), 0)
