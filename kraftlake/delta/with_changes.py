"""Changes of the entries of a persistent map, by key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import attrs
from rpds import HashTrieMap

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
ImageT = TypeVar("ImageT")
D = TypeVar("D", bound="EntriesDelta[Any, Any, Any]")


def with_changes(base: HashTrieMap[K, V], changes: Mapping[K, V | None]) -> HashTrieMap[K, V]:
    """`base` with every changed key set, or removed if its value is None.

    A value equal to the present one is not replaced: a map without changes stays the same object, and so do unchanged
    values. Values may be HashTrieMaps: their `==` is right, but their `!=` (rpds-py 2026.9) is wrong: it is true for
    two empty maps, and false for two that differ in some values only.
    """
    if not base:
        made = {key: value for key, value in changes.items() if value is not None}
        return HashTrieMap.convert(made) if made else base  # a fourth of the time of inserting one by one
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
    """Mark every key of `base` that no record has set as removed: a snapshot does not list deleted entries."""
    for key in base:
        changes.setdefault(key, None)


class EntriesDelta(Generic[ImageT, K, V]):
    """Changes of an image whose entries lie in one map, its attribute `ENTRIES`.

    `changes` has the new entry by key, in the order of the records; None for a removed one.
    """

    ENTRIES: ClassVar[str]

    def __init__(self, image: ImageT) -> None:
        self.image = image
        self.changes: dict[K, V | None] = {}

    @property
    def entries(self) -> HashTrieMap[K, V]:
        """The entries of the image."""
        entries: HashTrieMap[K, V] = getattr(self.image, self.ENTRIES)
        return entries

    def finish_snapshot(self) -> None:
        """Remove the entries that the snapshot lacks."""
        drop_missing(self.entries, self.changes)

    def apply(self) -> ImageT:
        """The image after the changes; the same object if there are none."""
        image: Any = self.image
        entries = with_changes(self.entries, self.changes)
        return self.image if entries is self.entries else attrs.evolve(image, **{self.ENTRIES: entries})


class Deltas(dict[K, D]):
    """The deltas of the images in a map, by key; one that is asked for and is not there is begun.

    `delta` begins with an image, `empty` makes that of a key which the map lacks.
    """

    def __init__(self, images: HashTrieMap[K, Any], delta: Callable[[Any], D], empty: Callable[[K], Any]) -> None:
        super().__init__()
        self.images = images
        self._delta = delta
        self._empty = empty

    def __missing__(self, key: K) -> D:
        made = self[key] = self._delta(self.images.get(key) or self._empty(key))
        return made

    def finish_snapshot(self) -> None:
        """Remove the entries, and those within others, that the snapshot lacks."""
        for key in self.images:
            self[key].finish_snapshot()

    def apply(self) -> HashTrieMap[K, Any]:
        """The map after the changes, without empty images; the same object if there are none."""
        images = {key: delta.apply() for key, delta in self.items()}
        return with_changes(self.images, {key: None if image.is_empty() else image for key, image in images.items()})
