"""The topics of an image: names, ids and rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from struct import iter_unpack
from typing import Any, Final

from kraftlake.kernels import compiled
from kraftlake.records.uuid import Uuid

SEARCHES: Final = 8
"""Number of searches before an index is made: making one takes about as long as this many searches."""


class TopicTable:
    """Names, ids and row ranges of the topics, shared by successive images until a topic is created or deleted.

    `names` are given as a list, or as one ASCII text with a newline after each name; the text becomes a list on first
    use, so that opening a large image makes no string for each topic. `ids` has 16 bytes for each topic. The partitions
    of topic t are the rows [starts[t], starts[t+1]) of int32[T + 1], by partition id. Partition ids are 0, 1, 2, …
    except for the topics in `sparse`, which has the ids. Immutable except for the indexes by name and by id: the first
    lookups scan all topics, so that a single lookup does not wait for an index.
    """

    def __init__(self, names: list[str] | bytes, ids: Any, starts: Any, sparse: Mapping[int, tuple[int, ...]]) -> None:
        count = names.count(b"\n") if isinstance(names, bytes) else len(names)
        self.id_bytes: Final = bytes(ids)
        self.bounds: Final = memoryview(starts).toreadonly()
        """The same as `starts`, without numpy."""
        assert 16 * count == len(self.id_bytes) == 16 * (len(starts) - 1), "a name and an id for each topic"
        self._text: bytes = names if isinstance(names, bytes) else b""
        self._names: list[str] | None = None if isinstance(names, bytes) else names
        self._name_ends: list[int] | None = None
        self.topic_count: Final = count
        self.sparse = sparse
        self._known_names: dict[str, int] = {}
        """`by_name` once it is made, empty before."""
        self._known_ids: dict[bytes, int] = {}
        """`by_id` once it is made, empty before."""
        self._searches_left = {"by_name": SEARCHES, "by_id": SEARCHES}

    @property
    def names(self) -> list[str]:
        """The names of the topics."""
        text, names = self._text, self._names  # the text first: another thread may drop it once the list is set
        if names is None:
            names = text.decode("ascii").split("\n")
            names.pop()
            self._names, self._text, self._name_ends = names, b"", None
        return names

    def name_of(self, number: int) -> str:
        """The name of a topic, without making the list of all names."""
        text, names, ends = self._text, self._names, self._name_ends
        if names is not None:
            return names[number]
        if ends is None:
            sizes = map(len, text.split(b"\n"))
            ends = self._name_ends = [at - 1 for at in accumulate(size + 1 for size in sizes)]
        return text[ends[number - 1] + 1 if number else 0 : ends[number]].decode("ascii")

    @cached_property
    def by_name(self) -> dict[str, int]:
        """The numbers of the topics by name."""
        numbers = dict(zip(self.names, range(len(self.names)), strict=True))
        assert len(numbers) == len(self.names), "topics have different names"
        self._known_names = numbers
        return numbers

    @cached_property
    def by_id(self) -> dict[bytes, int]:
        """The numbers of the topics by id."""
        ids = chain.from_iterable(iter_unpack("16s", self.id_bytes))
        numbers = dict(zip(ids, range(self.topic_count), strict=True))
        assert len(numbers) == self.topic_count, "topics have different ids"
        self._known_ids = numbers
        return numbers

    def number_of_name(self, name: str) -> int | None:
        """The number of the topic with a name, or None."""
        number = self._known_names.get(name)
        if number is not None:
            return number
        if not self._may_search("by_name"):
            return self.by_name.get(name)
        text, names = self._text, self._names
        if names is None:
            return _place_in(text, name)
        try:
            return names.index(name)
        except ValueError:
            return None

    def number_of_id(self, topic_id: bytes) -> int | None:
        """The number of the topic with an id, or None."""
        number = self._known_ids.get(topic_id)
        if number is not None:
            return number
        if not self._may_search("by_id"):
            return self.by_id.get(topic_id)
        found = compiled.find_bytes(self.id_bytes, topic_id) if len(topic_id) == 16 else -1
        return found if found >= 0 else None

    def _may_search(self, index: str) -> bool:
        left = self._searches_left[index]
        if left == 0 or index in self.__dict__:
            return False
        self._searches_left[index] = left - 1
        return True

    @property
    def starts(self) -> Any:
        """int32[T + 1]: where the rows of each topic begin. Imports numpy."""
        import numpy as np

        return np.asarray(self.bounds)

    @property
    def ids(self) -> Any:
        """uint8[T, 16]: the ids of the topics. Imports numpy."""
        import numpy as np

        return np.frombuffer(self.id_bytes, np.uint8).reshape(-1, 16)

    def partitions_of(self, number: int) -> Sequence[int]:
        """The ids of the partitions of a topic."""
        return self.sparse.get(number) or range(self.bounds[number + 1] - self.bounds[number])

    def topic_numbers(self) -> Any:
        """int32[N]: the number of the topic of each row. Imports numpy."""
        import numpy as np

        return np.repeat(np.arange(self.topic_count, dtype=np.int32), np.diff(self.starts))

    def partition_ids(self) -> Any:
        """int32[N]: the partition id of each row. Imports numpy."""
        import numpy as np

        ids = np.arange(self.bounds[-1], dtype=np.int32) - np.repeat(self.starts[:-1], np.diff(self.starts))
        for number, of_topic in self.sparse.items():
            ids[self.bounds[number] : self.bounds[number + 1]] = of_topic
        return ids

    @cached_property
    def lookup(self) -> dict[str, Any]:
        """A cache for data that other modules derive from the table, such as a compiled index."""
        return {}

    def id_of(self, number: int) -> Uuid:
        """The id of a topic."""
        return Uuid(self.id_bytes[16 * number : 16 * number + 16])


def table_of(topics: Iterable[tuple[str, bytes, Sequence[int]]]) -> TopicTable:
    """The table of topics whose rows lie side by side; of each the name, the id and the sorted ids of partitions."""
    names, ids, starts = list[str](), list[bytes](), array("i", [0])
    sparse: dict[int, tuple[int, ...]] = {}
    for name, topic_id, partitions in topics:
        count = len(partitions)
        if count and (partitions[0] != 0 or partitions[-1] != count - 1):
            sparse[len(names)] = tuple(partitions)
        names.append(name)
        ids.append(topic_id)
        starts.append(starts[-1] + count)
    return TopicTable(names, b"".join(ids), starts, sparse)


def sorted_table(names: list[str], ids: Any, topics: Any, partitions: Any) -> TopicTable:
    """The table of partitions that are sorted by the numbers of their topics and their ids (int32[N] each).

    Imports numpy.
    """
    import numpy as np

    starts = np.zeros(len(names) + 1, np.int32)
    np.cumsum(np.bincount(topics, minlength=len(names)), out=starts[1:])
    odd = topics[partitions != np.arange(len(partitions)) - starts[topics]]
    odd = odd[np.diff(odd, prepend=-1) > 0]  # np.unique would import numpy.ma
    sparse = {topic: tuple(partitions[starts[topic] : starts[topic + 1]].tolist()) for topic in odd.tolist()}
    return TopicTable(names, ids, starts, sparse)


def _place_in(text: bytes, name: str) -> int | None:
    """The number of the line that is `name`, in a text with a newline after each line."""
    if not name.isascii() or "\n" in name:
        return None
    line = f"{name}\n".encode()
    if text.startswith(line):
        return 0
    at = text.find(b"\n" + line)
    return None if at < 0 else text.count(b"\n", 0, at + 1)
