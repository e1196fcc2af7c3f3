"""The topics and partitions that a bulk change has, by their numbers."""

from __future__ import annotations

from array import array
from functools import cached_property
from itertools import compress
from sys import byteorder
from typing import Any

from kraftlake.delta.topics.bulk_state import BulkState
from kraftlake.image.topics.buffers import flat, room
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import ROW, registration_of
from kraftlake.kernels import compiled
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.kernels.replay import change_state
from kraftlake.records.uuid import Uuid

_CREATED, _DELETED = (
    bytes(life in lives for life in range(256))
    for lives in ((change_state.ANEW, change_state.AGAIN), (change_state.GONE, change_state.AGAIN))
)
"""Whether a record has created, or deleted, a topic of the base, by its life."""


class BulkTopics(BulkState):
    """Topics by number: those of the base, then the created ones; partitions by place, see `Journal`."""

    @property
    def topic_total(self) -> int:
        """The number of topics, including deleted ones."""
        return self.packed.table.topic_count + self.count(change_state.N_TOPICS)

    @property
    def lives(self) -> Any:
        """The state of each topic: GONE, ALIVE, ANEW or AGAIN (uint8)."""
        return self.state.alive[: self.topic_total]

    @property
    def all_alive(self) -> bool:
        """Whether each topic is as a record has created it first, or the base has it."""
        return bytes(self.lives).count(change_state.ALIVE) == self.topic_total

    def created(self) -> list[int]:
        """The topics that exist and were created by a record."""
        known, lives = self.packed.table.topic_count, bytes(self.lives)
        return [*compress(range(len(lives)), lives[:known].translate(_CREATED) + lives[known:])]

    def deleted(self) -> list[int]:
        """The deleted topics of the base, also those that were created again."""
        known = self.packed.table.topic_count
        return [*compress(range(known), bytes(self.lives[:known]).translate(_DELETED))]

    @property
    def new_names(self) -> list[str]:
        """The names of the created topics, including deleted ones."""
        text, ends = self._new_names()
        if len(ends) == text.count(b"\n"):
            return text.decode().split("\n")[:-1]
        return [text[first:last].decode() for first, last in zip([0, *(end + 1 for end in ends)], ends, strict=False)]

    @property
    def names(self) -> list[str] | bytes:
        """The names of all topics, including deleted ones, as TopicTable takes them."""
        if not self.packed.table.topic_count:
            text, ends = self._new_names()
            if text.isascii() and len(ends) == text.count(b"\n"):
                return text
        return self.packed.table.names + self.new_names

    def _new_names(self) -> tuple[bytes, list[int]]:
        """The names of the created topics with a newline behind each, and where each ends."""
        known, state = self.packed.table.topic_count, self.state
        if not self.count(change_state.N_TOPICS):
            return b"", []
        start = state.name_ends[known - 1] + 1 if known else 0
        text: bytes = state.names[start : self.count(change_state.N_NAMES)].tobytes()
        return text, [end - start for end in state.name_ends[known : self.topic_total]]

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

    def topic_ids(self) -> bytes:
        """The ids of all topics, including deleted ones, one after the other."""
        return self.packed.table.id_bytes + _bytes_of(self.state.ids[: self.count(change_state.N_TOPICS)])

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
        high, low = int.from_bytes(topic_id[:8], "big"), int.from_bytes(topic_id[8:], "big")
        return compiled.number_of_id(high, low, *self.buffers)

    def partition(self, topic: int, partition: int) -> PartitionRegistration | None:
        """The state of a partition of an existing topic."""
        place = compiled.place_of_partition(topic, partition, *self.buffers)
        if place < 0:
            return None
        row = room("i", 1, COLUMNS)
        compiled.rows_at(array("q", [place]), *self.buffers, row)
        return registration_of(ROW.unpack(flat(row)), self.heap(), self.directory_ids())

    @property
    def directory_total(self) -> int:
        """The number of known directory ids."""
        return self.count(change_state.N_DIRECTORIES)

    def directory_ids(self) -> tuple[Uuid, ...]:
        """The directory ids by number."""
        known = len(self.packed.directories)
        if known == self.directory_total:
            return self.packed.directories
        added = _bytes_of(self.state.directories[known : self.directory_total])
        return (*self.packed.directories, *[Uuid(added[i : i + 16]) for i in range(0, len(added), 16)])

    def new_id(self, place: int) -> Uuid:
        """The id of a created topic."""
        return Uuid(_bytes_of(self.state.ids[place : place + 1]))

    @property
    def place_count(self) -> int:
        """The number of places of a journal, including those of deleted partitions."""
        return self.packed.partition_count + self.count(change_state.N_FRESH)

    def rows_at(self, places: Any) -> Any:
        """The rows of places of a journal (int32[n, 14]), of deleted partitions as they were last. Imports numpy."""
        import numpy as np

        rows = room("i", len(places), COLUMNS)
        compiled.rows_at(np.ascontiguousarray(places, np.int64), *self.buffers, rows)
        return np.asarray(rows)

    def topics_at(self, places: Any) -> Any:
        """The numbers of the topics of places of a journal (int32). Imports numpy."""
        return self._at(places, self._base_topics, change_state.OF)

    def partitions_at(self, places: Any) -> Any:
        """The ids of the partitions at places of a journal (int32). Imports numpy."""
        return self._at(places, self._base_partitions, change_state.ID)

    @cached_property
    def _base_topics(self) -> Any:
        return self.packed.table.topic_numbers()

    @cached_property
    def _base_partitions(self) -> Any:
        return self.packed.table.partition_ids()

    def _at(self, places: Any, of_base: Any, column: int) -> Any:
        import numpy as np

        known, fresh = self.packed.partition_count, np.asarray(self.state.fresh)[:, column]
        if not known:
            return fresh[places]
        found = of_base[np.minimum(places, known - 1)]
        is_fresh = places >= known
        found[is_fresh] = fresh[places[is_fresh] - known]
        return found


def _bytes_of(ids: Any) -> bytes:
    """The bytes of ids that are rows of two numbers."""
    halves = array("Q", flat(ids).tobytes())
    if byteorder == "little":
        halves.byteswap()
    return halves.tobytes()
