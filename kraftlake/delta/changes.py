"""How the changes that a delta has gathered are put into a persistent map."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from rpds import HashTrieMap

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def with_changes(base: HashTrieMap[K, V], changes: Mapping[K, V | None]) -> HashTrieMap[K, V]:
    """`base` with every changed key set, or removed where its value is None.

    A value that equals the one already there is left alone, so that a map in which nothing changed stays the same
    object, and unchanged values do too. Values may be HashTrieMaps: their `==` is right, their `!=` (rpds-py 2026.9)
    is not, it holds for two empty maps and not for two that differ in some values only.
    """
    result = base
    for key, value in changes.items():
        current = base.get(key)
        if value is None:
            if current is not None:
                result = result.remove(key)
        elif current is None or not current == value:  # noqa: SIM201 - see above
            result = result.insert(key, value)
    return result


def drop_missing(base: HashTrieMap[K, V], changes: dict[K, V | None]) -> None:
    """Mark every key of `base` that no record has named as removed: what a snapshot lacks is gone."""
    for key in base:
        changes.setdefault(key, None)
