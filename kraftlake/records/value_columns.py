"""The values of batches as columns of a lake's log, without an object per record. Imports numpy and pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.records.batch import NO_TIMESTAMP
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.serde import record_type


def has_plain_frames(values: BatchValues) -> bool:
    """Whether each value begins with a metadata record's frame of three bytes, as all values of Kafka do so far."""
    return _frame_kinds(values) is not None


def columns_of_values(values: BatchValues) -> dict[str, pa.Array] | None:
    """Return the columns of `to_rows`, in bulk; None if a frame is not plain."""
    count = values.record_count
    kinds = _frame_kinds(values)
    if kinds is None:
        return None
    of_batch = np.diff(values.last_offsets, prepend=values.base_offset - 1)
    known = np.flatnonzero(np.bincount(kinds))
    names = pa.array([record_type(False, int(kind) >> 7, int(kind) & 127) for kind in known], pa.string())
    return {
        "offset": pa.array(values.base_offset + np.arange(count, dtype=np.int64)),
        "epoch": pa.array(np.repeat(values.epochs.astype(np.int32), of_batch)),
        "timestamp": pa.array(values.times * 1000, mask=values.times == NO_TIMESTAMP).cast(
            pa.timestamp("us", tz="UTC")
        ),
        "batch": pa.array(np.repeat(values.last_offsets - of_batch + 1, of_batch)),
        "type": names.take(pa.array(np.searchsorted(known, kinds))),
        "api_key": pa.array((kinds >> 7).astype(np.int16)),
        "version": pa.array((kinds & 127).astype(np.int16)),
        "control": pa.array(np.zeros(count, np.bool_)),
        "payload": _payloads(values),
    }


def _frame_kinds(values: BatchValues) -> Any:
    """Return the frame of each value as 128 × api key + version (int64[n]); None if one isn't three plain bytes."""
    if (values.stops - values.starts < 3).any():
        return None
    frames, keys, versions = (values.data[values.starts + place] for place in range(3))
    if (frames != 1).any() or (keys >= 0x80).any() or (versions >= 0x80).any():
        return None
    return keys.astype(np.int64) << 7 | versions


def _payloads(values: BatchValues) -> pa.Array:
    """Return the values without the bytes between them: every other element of an array of values and gaps."""
    bounds = np.column_stack((values.starts, values.stops)).reshape(-1)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(values.data)]
    spread = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
    return spread.take(pa.array(np.arange(0, len(bounds), 2))).cast(pa.binary())
