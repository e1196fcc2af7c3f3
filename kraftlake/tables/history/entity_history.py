"""The states of the entities of a history table, with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.tables.history.entity_table import EntityTable, Key, State
from kraftlake.tables.row_buffer import table_of_rows

if TYPE_CHECKING:
    from kraftlake.replay.log.delta_chunk import DeltaChunk

Row = tuple[Any, ...]
"""A value for each column of a table."""

Since = Callable[[tuple[Any, ...]], tuple[int, int] | None]
"""The offset and time (epoch ms, -1 for none) at which the state of an entity began, by the values of its key."""


@attrs.frozen
class _Open:
    row: Row
    state: Any
    since: int
    since_time: int


class EntityHistory:
    """The open states of a table; `take` returns the states that deltas end.

    The result depends on the log alone: states that end at one offset are in the order of the records that end them,
    then configs of removed topics by name; open states are in the order of the records that began them, after those of
    the image by key.
    """

    def __init__(
        self,
        table: EntityTable,
        image: MetadataImage = MetadataImage.EMPTY,
        since: Since = lambda _: None,
        *,
        states: Iterable[tuple[Key, State]] | None = None,
    ) -> None:
        """Initialize with the entities of an image, each since an offset and time: by default the image's own.

        `states` are other states than those of the image.
        """
        self._table = table
        states = table.begins(image, QuorumState()) if states is None else states
        rows = [(table.row(key, state), key, state) for key, state in states]
        begin = (image.provenance.offset, image.provenance.timestamp)
        self._open: dict[Key, _Open] = {}
        for values, row, key, state in sorted(((table.key_of(each[0]), *each) for each in rows), key=itemgetter(0)):
            self._open[key] = _Open(row, state, *(since(values) or begin))

    def take(self, chunk: DeltaChunk) -> list[Row]:
        """The rows of the states that deltas end, which follow the earlier ones."""
        ended: list[Row] = []
        for offset, time, states in self._table.changes(chunk, self._known):
            for key, state in states.items():
                self._change(key, state, offset, time, ended)
        return ended

    def open_table(self) -> pa.Table:
        """The states that have not ended."""
        rows = [(*each.row, each.since, None, _micros(each.since_time), None) for each in self._open.values()]
        return table_of_rows(rows, self._table.schema)

    @property
    def open_count(self) -> int:
        """The number of states that have not ended."""
        return len(self._open)

    def _known(self) -> dict[Key, State]:
        return {key: each.state for key, each in self._open.items()}

    def _change(self, key: Key, state: Any, offset: int, time: int, ended: list[Row]) -> None:
        before = self._open.get(key)
        if before is not None:
            if state is not None and before.state == state:
                return
            del self._open[key]
            if before.since != offset:
                ended.append((*before.row, before.since, offset, _micros(before.since_time), _micros(time)))
        if state is not None:
            self._open[key] = _Open(self._table.row(key, state), state, offset, time)


def _micros(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms * 1000
