"""The columns that all history tables have, and those of `partition_history/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kraftlake.tables.encoded_schema import encoded
from kraftlake.tables.partition_columns import PARTITION_STATE

if TYPE_CHECKING:
    from kraftlake.replay.log.delta_chunk import DeltaBoundaries

Column = tuple[pa.Field, str]
"""A column and its meaning."""

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

VALIDITY: Final[tuple[Column, ...]] = (
    (
        pa.field("valid_from_offset", pa.int64(), nullable=False),
        "the offset at which it became so: of the record, of the EndTransactionRecord for those of a metadata "
        "transaction, or the last offset in the snapshot that the history begins with",
    ),
    (pa.field("valid_to_offset", pa.int64()), "the offset at which it ended (exclusive); null: still so"),
    (
        pa.field("valid_from", TIMESTAMP),
        "the time of the batch at valid_from_offset by its controller's clock; null where the batch has none",
    ),
    (
        pa.field("valid_to", TIMESTAMP),
        "the time of the batch at valid_to_offset by its controller's clock; null: still so, or the batch has none",
    ),
)

OF_OTHER_PARTS: Final[tuple[Column, ...]] = (
    (
        pa.field("leader_rack", pa.string()),
        "the rack of the leader's broker, as it is registered; null without a leader or a rack",
    ),
)
"""The columns of `partition_history/` on a partition that come from other parts of the image."""

PARTITION_COLUMNS: Final[tuple[Column, ...]] = (*PARTITION_STATE, *OF_OTHER_PARTS, *VALIDITY)

PARTITION_HISTORY_SCHEMA: Final = pa.schema([field for field, _ in PARTITION_COLUMNS])

ENCODED_STATES: Final = encoded(PARTITION_HISTORY_SCHEMA)
"""The schema of new rows of `partition_history/`: strings are dictionaries."""

ROW_GROUP_ROWS: Final = 1 << 15
"""The number of rows in a row group: readers read or skip all of them."""

STILL_SO: Final = -1
"""The value for null in numpy arrays of `valid_to_offset`."""


def times_of(times_ms: object) -> pa.Array:
    """Epoch milliseconds (an int64 array; negative for none) as timestamps."""
    import numpy as np

    times = np.asarray(times_ms, np.int64)
    none = times < 0
    return pa.array(times * 1000, mask=none if none.any() else None).cast(TIMESTAMP)


def delta_columns(boundaries: DeltaBoundaries, deltas: object) -> dict[str, pa.Array]:
    """The columns `offset`, `epoch` and `timestamp` of rows that are of deltas, by number (int64[n])."""
    return {
        "offset": pa.array(boundaries.offsets[deltas]),
        "epoch": pa.array(boundaries.epochs[deltas]),
        "timestamp": times_of(boundaries.times[deltas]),
    }
