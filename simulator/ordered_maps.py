"""Persistent maps that are iterated in the order of insertion, in place of rpds's, whose order differs in each process.

`install` has to come before the import of kraftlake. Maps are small in a simulation, so that a change copies them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any


class HashTrieMap(Mapping[Any, Any]):
    """An immutable map, with the methods of `rpds.HashTrieMap`."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), **more: Any) -> None:
        self._held: dict[Any, Any] = {**dict(held), **more}

    @classmethod
    def _of(cls, held: dict[Any, Any]) -> HashTrieMap:
        made = cls.__new__(cls)
        made._held = held
        return made

    @classmethod
    def convert(cls, value: Any) -> HashTrieMap:
        return value if isinstance(value, HashTrieMap) else cls(value)

    @classmethod
    def fromkeys(cls, keys: Iterable[Any], value: Any = None) -> HashTrieMap:
        return cls._of(dict.fromkeys(keys, value))

    def __getitem__(self, key: Any) -> Any:
        return self._held[key]

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __eq__(self, other: object) -> bool:
        return self._held == (other._held if isinstance(other, HashTrieMap) else other)

    def __hash__(self) -> int:
        return hash(frozenset(self._held.items()))

    def __repr__(self) -> str:
        return f"HashTrieMap({self._held!r})"

    def get(self, key: Any, default: Any = None) -> Any:
        return self._held.get(key, default)

    def keys(self) -> Any:
        return self._held.keys()

    def values(self) -> Any:
        return self._held.values()

    def items(self) -> Any:
        return self._held.items()

    def insert(self, key: Any, value: Any) -> HashTrieMap:
        return self._of({**self._held, key: value})

    def remove(self, key: Any) -> HashTrieMap:
        held = dict(self._held)
        del held[key]
        return self._of(held)

    def discard(self, key: Any) -> HashTrieMap:
        return self.remove(key) if key in self._held else self

    def update(self, *others: Mapping[Any, Any] | Iterable[tuple[Any, Any]], **more: Any) -> HashTrieMap:
        held = dict(self._held)
        for other in others:
            held.update(other)
        held.update(more)
        return self._of(held)


def install() -> None:
    """Let `from rpds import HashTrieMap` find the one above from now on, in this process."""
    assert "kraftlake.image" not in sys.modules, "images hold other maps already"
    module = ModuleType("rpds")
    vars(module)["HashTrieMap"] = HashTrieMap
    sys.modules["rpds"] = module
