"""A history table of entities that a cluster has few of: its columns, and the records that change its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.tables.history.history_columns import VALIDITY, Column

if TYPE_CHECKING:
    from kraftlake.replay.loader.quorum_state import QuorumState
    from kraftlake.replay.log.delta_chunk import DeltaChunk
    from kraftlake.replay.log.other_records import OtherChange

Key = Any
State = Any
Changed = tuple[int, int, Mapping[Key, State | None]]
"""An offset with its time (epoch ms, -1 for none), and the states after it of the keys that may have changed there."""
Known = Callable[[], dict[Key, State]]
"""The open states by key."""
TEXTS: Final = pa.list_(pa.string())


@attrs.frozen(kw_only=True, eq=False)
class EntityTable:
    """A history table of entities that a cluster has few of.

    `keys` returns all keys of an image, `look` the state of one key (None: the image does not have it), and `row` the
    values of all columns but those of VALIDITY. `also_changed` returns keys that a change may change without a record
    of them, in an order that depends on them alone. Equal states are one row, and unequal states are two even where
    their rows show the same: a new password is another state.
    """

    name: str
    comment: str
    key: tuple[str, ...]
    """The columns that identify an entity."""
    key_of_record: Mapping[type, Callable[[Any], Key]]
    """The record types that change a state, each with the key that a record of it may change."""
    own_columns: tuple[Column, ...]
    keys: Callable[[MetadataImage], Iterable[Key]]
    look: Callable[[MetadataImage, Key], State | None]
    row: Callable[[Key, State], tuple[Any, ...]]
    also_changed: Callable[[OtherChange], Iterable[Key]] | None = None

    def begins(self, image: MetadataImage, quorum: QuorumState) -> Iterable[tuple[Key, State]]:  # noqa: ARG002 - of quorums
        """The states of an image, and of the quorum at its offset, by key."""
        return ((key, self.look(image, key)) for key in self.keys(image))

    def changes(self, chunk: DeltaChunk, known: Known) -> Iterator[Changed]:  # noqa: ARG002 - of quorums
        """The states that deltas may have changed, by the offset at which they did; `known` are those that are open."""
        keys_of, also_changed = self.key_of_record, self.also_changed
        for other in chunk.others:
            keys = [keys_of[type(message)](message) for message in other.messages if type(message) in keys_of]
            if also_changed is not None:
                keys += also_changed(other)
            if keys:
                yield other.offset, other.time, {key: self.look(other.image, key) for key in keys}

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns of the table."""
        return (*self.own_columns, *VALIDITY)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the columns."""
        return pa.schema([field for field, _ in self.columns])

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of the key's columns in a row of the table's own columns."""
        names = [field.name for field, _ in self.own_columns]
        return tuple(row[names.index(name)] for name in self.key)


@attrs.frozen(kw_only=True, eq=False)
class RowTable(EntityTable):
    """A history table of states that no image has alone: a state is the values of the table's own columns.

    A key is that of the columns. A run goes on from the open rows of the table.
    """

    key_of_record: Mapping[type, Callable[[Any], Key]] = attrs.field(factory=dict)
    keys: Callable[[MetadataImage], Iterable[Key]] = lambda _: ()
    look: Callable[[MetadataImage, Key], State | None] = lambda _, __: None
    row: Callable[[Key, State], tuple[Any, ...]] = lambda _, state: state


def column(name: str, kind: pa.DataType, comment: str, *, nullable: bool = False) -> Column:
    """A column with its meaning."""
    return pa.field(name, kind, nullable=nullable), comment
