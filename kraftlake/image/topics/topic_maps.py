"""The topics of a packed image as mappings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rpds import HashTrieMap

from kraftlake.records.uuid import Uuid

if TYPE_CHECKING:
    from kraftlake.image.topics.topic_image import TopicImage
    from kraftlake.image.topics.topic_table import TopicTable

K = TypeVar("K", bound=Hashable)


class TopicMap(Mapping[K, "TopicImage"]):
    """The topics of the overlay, and those of the packed table that it does not replace, by their name or id.

    `find` returns the topic of a key, `keys` has those of the table's topics, `key` that of a topic.
    """

    def __init__(
        self,
        find: Callable[[K], TopicImage | None],
        keys: Callable[[], Iterable[K]],
        key: Callable[[TopicImage], K],
        table: TopicTable,
        overlay: HashTrieMap[Uuid, TopicImage | None],
    ) -> None:
        self._find = find
        self._keys = keys
        self._key = key
        self._table = table
        self._overlay = overlay

    def __getitem__(self, key: K) -> TopicImage:
        topic = self._find(key)
        if topic is None:
            raise KeyError(key)
        return topic

    def get(self, key: K, default: Any = None) -> Any:
        """The topic, or `default`."""
        topic = self._find(key)
        return default if topic is None else topic

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str | bytes) and self._find(key) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[K]:
        overlay, id_of = self._overlay, self._table.id_of
        for number, key in enumerate(self._keys()):
            if len(overlay) == 0 or id_of(number) not in overlay:
                yield key
        yield from (self._key(topic) for topic in overlay.values() if topic is not None)

    def __len__(self) -> int:
        overlay, count = self._overlay, self._table.topic_count
        if len(overlay) == 0:  # without making the index by id
            return count
        known = self._table.by_id
        replaced = sum(topic_id in known for topic_id in overlay)
        return count - replaced + sum(topic is not None for topic in overlay.values())
