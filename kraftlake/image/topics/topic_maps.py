"""The topics of a packed image as mappings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rpds import HashTrieMap

from kraftlake.records.uuid import Uuid

if TYPE_CHECKING:
    from kraftlake.image.topics.topic_image import TopicImage
    from kraftlake.image.topics.topic_table import TopicTable


class TopicsById(Mapping[Uuid, "TopicImage"]):
    """Topic id → topic: the topics of the overlay, and those of the packed table that it does not replace."""

    def __init__(
        self,
        topic_of: Callable[[Uuid], TopicImage | None],
        table: TopicTable,
        overlay: HashTrieMap[Uuid, TopicImage | None],
    ) -> None:
        self._topic_of = topic_of
        self._table = table
        self._overlay = overlay

    def __getitem__(self, topic_id: Uuid) -> TopicImage:
        topic = self._topic_of(topic_id)
        if topic is None:
            raise KeyError(topic_id)
        return topic

    def get(self, topic_id: Uuid, default: Any = None) -> Any:
        """The topic, or `default`."""
        topic = self._topic_of(topic_id)
        return default if topic is None else topic

    def __contains__(self, topic_id: object) -> bool:
        return isinstance(topic_id, bytes) and self._topic_of(topic_id) is not None  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Uuid]:
        for topic in self._topics():
            yield topic.id

    def __len__(self) -> int:
        overlay, count = self._overlay, self._table.topic_count
        if len(overlay) == 0:  # without making the index by id
            return count
        known = self._table.by_id
        replaced = sum(topic_id in known for topic_id in overlay)
        return count - replaced + sum(topic is not None for topic in overlay.values())

    def _topics(self) -> Iterator[TopicImage]:
        overlay = self._overlay
        for topic_id in self._table.by_id:
            if topic_id not in overlay:
                topic = self._topic_of(topic_id)  # type: ignore[arg-type]
                assert topic is not None, "the table has it"
                yield topic
        yield from (topic for topic in overlay.values() if topic is not None)


class TopicsByName(Mapping[str, "TopicImage"]):
    """Topic name → topic."""

    def __init__(self, topic_of: Callable[[str], TopicImage | None], by_id: TopicsById) -> None:
        self._topic_of = topic_of
        self._by_id = by_id

    def __getitem__(self, name: str) -> TopicImage:
        topic = self._topic_of(name)
        if topic is None:
            raise KeyError(name)
        return topic

    def get(self, name: str, default: Any = None) -> Any:
        """The topic, or `default`."""
        topic = self._topic_of(name)
        return default if topic is None else topic

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._topic_of(name) is not None

    def __iter__(self) -> Iterator[str]:
        for topic in self._by_id._topics():
            yield topic.name

    def __len__(self) -> int:
        return len(self._by_id)
