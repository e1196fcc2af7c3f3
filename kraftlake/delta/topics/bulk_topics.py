"""The topics and partitions that a bulk change has, by their numbers. Imports numpy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kraftlake.delta.topics.bulk_state import BulkState
from kraftlake.kernels.replay.change_state import GONE, N_DIRECTORIES, N_FRESH, N_NAMES, N_TOPICS
from kraftlake.records.uuid import Uuid


class BulkTopics(BulkState):
    """Topics by number: those of the base, then the created ones; partitions by place, see `Journal`."""

    @property
    def topic_total(self) -> int:
        """The number of topics, including deleted ones."""
        return self.packed.table.topic_count + self.count(N_TOPICS)

    @property
    def lives(self) -> Any:
        """By topic GONE, ALIVE, ANEW or AGAIN (uint8)."""
        return self.state.alive[: self.topic_total]

    @property
    def new_names(self) -> list[str]:
        """The names of the created topics, including deleted ones."""
        text, ends = self._new_names()
        if len(ends) == text.count(b"\n"):
            return text.decode().split("\n")[:-1]
        return [text[first:last].decode() for first, last in zip([0, *(ends + 1)], ends, strict=False)]

    @property
    def names(self) -> list[str] | bytes:
        """The names of all topics, including deleted ones, as TopicTable takes them."""
        if not self.packed.table.topic_count:
            text, ends = self._new_names()
            if text.isascii() and len(ends) == text.count(b"\n"):
                return text
        return self.packed.table.names + self.new_names

    def _new_names(self) -> tuple[bytes, Any]:
        """The names of the created topics with a newline behind each, and where each ends."""
        known, state = self.packed.table.topic_count, self.state
        if not self.count(N_TOPICS):
            return b"", np.empty(0, np.int64)
        start = int(state.name_ends[known - 1]) + 1 if known else 0
        text: bytes = state.names[start : self.count(N_NAMES)].tobytes()
        return text, state.name_ends[known : self.topic_total] - start

    def topic_name(self, topic: int) -> str:
        """The name of a topic."""
        if topic < self.packed.table.topic_count:
            return self.packed.table.name_of(topic)
        first, last = self.state.name_ends[topic - 1] + 1 if topic else 0, self.state.name_ends[topic]
        name: str = self.state.names[first:last].tobytes().decode()
        return name

    def topic_id(self, topic: int) -> Uuid:
        """The id of a topic."""
        known = self.packed.table.topic_count
        return self.packed.table.id_of(topic) if topic < known else self.new_id(topic - known)

    def topic_ids(self) -> Any:
        """The ids of all topics, including deleted ones: uint8[T, 16]."""
        created = self.state.ids[: self.state.counts[N_TOPICS]]
        return np.concatenate((self.packed.table.ids, created.astype(">u8").view(np.uint8).reshape(-1, 16)))

    def topic_number(self, name: str) -> int:
        """The number of the existing topic with a name, or -1; a created one if a snapshot gave it a taken name."""
        alive, table = self.state.alive, self.packed.table
        for number, new_name in enumerate(self.new_names, start=table.topic_count):
            if new_name == name and alive[number]:
                return number
        known = table.by_name.get(name)
        return known if known is not None and alive[known] else -1

    def number_of_id(self, topic_id: Uuid) -> int:
        """The number of the existing topic with an id, or -1."""
        number = self.packed.table.number_of_id(topic_id)
        if number is not None and self.state.alive[number]:
            return number
        known = self.packed.table.topic_count
        created = self.state.ids[: self.count(N_TOPICS)]
        same = (created == np.frombuffer(topic_id, ">u8").astype(np.uint64)).all(axis=1)
        places = np.flatnonzero(same & (self.lives[known:] != GONE))
        return known + int(places[0]) if len(places) else -1

    @property
    def directory_total(self) -> int:
        """The number of known directory ids."""
        return self.count(N_DIRECTORIES)

    def directory_ids(self) -> tuple[Uuid, ...]:
        """The directory ids by number."""
        known = len(self.packed.directories)
        added = self.state.directories[known : self.state.counts[N_DIRECTORIES]].astype(">u8").tobytes()
        return (*self.packed.directories, *[Uuid(added[i : i + 16]) for i in range(0, len(added), 16)])

    def new_id(self, place: int) -> Uuid:
        """The id of a created topic."""
        return Uuid(self.state.ids[place].astype(">u8").tobytes())

    @property
    def place_count(self) -> int:
        """The number of places of a journal, including those of deleted partitions."""
        return self.packed.partition_count + self.count(N_FRESH)

    def rows_at(self, places: Any) -> Any:
        """The rows of places of a journal (int32[n, 14]), of deleted partitions as they were last."""
        state = self.state
        is_dense = len(state.dense_flags) > 0
        rows = self._at(places, state.dense_rows if is_dense else self.packed.rows, state.fresh_rows)
        if not is_dense and len(state.slots):
            of_base = np.flatnonzero(places < self.packed.partition_count)
            touched = state.slots[places[of_base]] - 1
            is_touched = touched >= 0
            rows[of_base[is_touched]] = state.touched_rows[touched[is_touched]]
        return rows

    def topics_at(self, places: Any) -> Any:
        """The numbers of the topics of places of a journal (int32)."""
        return self._at(places, self._base_topics, self.state.fresh_topics)

    def partitions_at(self, places: Any) -> Any:
        """The ids of the partitions at places of a journal (int32)."""
        return self._at(places, self._base_partitions, self.state.fresh_partitions)

    @cached_property
    def _base_topics(self) -> Any:
        return self.packed.table.topic_numbers()

    @cached_property
    def _base_partitions(self) -> Any:
        return self.packed.table.partition_ids()

    def _at(self, places: Any, of_base: Any, fresh: Any) -> Any:
        known = self.packed.partition_count
        if not known:
            return fresh[places]
        found = of_base[np.minimum(places, known - 1)]
        is_fresh = places >= known
        found[is_fresh] = fresh[places[is_fresh] - known]
        return found
