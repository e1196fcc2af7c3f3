"""The values of batches as columns of a lake's log, without an object a record. Imports numpy and pyarrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraftlake import kernels
from kraftlake.kernels.batches.payloads import frame_kinds, gather
from kraftlake.records.batch import NO_TIMESTAMP
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.serde import record_type


def has_plain_frames(values: BatchValues) -> bool:
    """Whether each value begins with a metadata record's frame of three bytes, as all of Kafka's do so far."""
    return frame_kinds(values.data, values.starts, values.stops, np.empty(values.record_count, np.int64))


def columns_of_values(values: BatchValues) -> dict[str, pa.Array] | None:
    """The columns of `to_rows`, of many batches at once; None without compiled code, or where a frame is not plain."""
    count = values.record_count
    kinds = np.empty(count, np.int64)
    if not (kernels.available() and frame_kinds(values.data, values.starts, values.stops, kinds)):
        return None
    of_batch = np.diff(values.last_offsets, prepend=values.base_offset - 1)
    known = np.flatnonzero(np.bincount(kinds))
    names = pa.array([record_type(False, int(kind) >> 7, int(kind) & 127) for kind in known], pa.string())
    content = np.empty(int((values.stops - values.starts).sum()), np.uint8)
    bounds = np.empty(count + 1, np.int32)
    gather(values.data, values.starts, values.stops, content, bounds)
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
        "payload": pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(content)]),
    }
