"""The starts of the open intervals of a history table, for a run that continues from the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import LakeError
from kraftlake.tables.history.entity_table import EntityTable, Key, State
from kraftlake.tables.history.history_table import HistoryTable

_SINCE = ("valid_from_offset", "valid_from")
_UNKNOWN = -2


def partitions_since(topics: TopicsImage, table: HistoryTable, *, of_shard: bool = False) -> tuple[Any, Any]:
    """The offset and time (int64 each; epoch ms, -1 for none) at which the state of each of an image's rows began.

    Raises LakeError if the table's open rows are not the partitions of the image; with `of_shard`, only if they lack
    one of them.
    """
    packed = topics.rows().merged()
    rows = table.open_rows(("topic_id", "partition", *_SINCE))
    ids = rows.column("topic_id").combine_chunks().dictionary_encode()
    if isinstance(ids, pa.ChunkedArray):
        ids = pa.concat_arrays(ids.chunks) if ids.num_chunks else pa.array([], pa.string()).dictionary_encode()
    by_id = packed.table.by_id
    numbers = np.array([by_id.get(Uuid.from_string(text), -1) for text in ids.dictionary.to_pylist()], np.int64)
    of_row = numbers[ids.indices.to_numpy(zero_copy_only=False)] if len(ids) else np.empty(0, np.int64)
    partitions = rows.column("partition").to_numpy().astype(np.int64)
    places = np.asarray(packed.table.starts)[np.maximum(of_row, 0)] + partitions
    for number, known in packed.table.sparse.items():
        of_topic = of_row == number
        order = np.searchsorted(np.array(known), partitions[of_topic])
        places[of_topic] = packed.table.starts[number] + np.minimum(order, len(known) - 1)
    since = np.full(packed.partition_count, _UNKNOWN, np.int64)
    times = np.full(packed.partition_count, _UNKNOWN, np.int64)
    inside = (of_row >= 0) & (places < len(since))
    since[places[inside]] = rows.column("valid_from_offset").to_numpy()[inside]
    times[places[inside]] = _milliseconds(rows.column("valid_from"))[inside]
    count = int(np.count_nonzero(inside)) if of_shard else rows.num_rows
    if count != len(since) or (since == _UNKNOWN).any():
        raise LakeError(
            f"{table.path} has {rows.num_rows} partitions at its end, not the {len(since)} of its log: delete "
            f"{table.name}/ and run again, it is made anew from what the log holds"
        )
    return since, times


def entities_since(table: HistoryTable, key: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """The offset and time (epoch ms, -1 for none) at which each open row began, by the values of its key."""
    rows = table.open_rows((*key, *_SINCE))
    keys = [tuple(row[name] for name in key) for row in rows.select([*key, _SINCE[0]]).to_pylist()]
    times = _milliseconds(rows.column("valid_from")).tolist()
    return dict(zip(keys, zip(rows.column("valid_from_offset").to_pylist(), times, strict=True), strict=True))


def open_states(table: HistoryTable, of: EntityTable) -> Iterator[tuple[Key, State]]:
    """The open rows of a table whose states are the values of its own columns, by key."""
    names = [field.name for field, _ in of.own_columns]
    for row in table.open_rows(names).to_pylist():
        state = tuple(row[name] for name in names)
        yield of.key_of(state), state


def _milliseconds(column: pa.ChunkedArray) -> Any:
    return column.cast(pa.int64()).fill_null(-1000).to_numpy() // 1000
