"""Many record batches at once in format v2, without an object per record. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlake.kernels.compiled import measure_sections, write_sections
from kraftlake.records.batch import framed
from kraftlake.records.batch_values import BatchValues


def encode_batches(values: BatchValues, compression: str = "none") -> Iterator[bytes]:
    """Yield the result of `encode_batch` for each batch; raises as it does."""
    base, first = values.base_offset, 0
    ends = (values.last_offsets, values.epochs, values.timestamps)
    for section, last_offset, epoch, timestamp in zip(
        _sections(values), *(array.tolist() for array in ends), strict=True
    ):
        yield framed(
            section, base_offset=base, epoch=epoch, count=last_offset + 1 - base,
            first_timestamp=int(values.times[first]), timestamp=timestamp, compression=compression,
        )  # fmt: skip
        base, first = last_offset + 1, last_offset + 1 - values.base_offset


def _sections(values: BatchValues) -> Iterator[bytes]:
    """Yield the records section of each batch."""
    ends = values.last_offsets + 1 - values.base_offset
    sizes = np.empty(len(ends), np.int64)
    measure_sections(values.starts, values.stops, values.times, ends, sizes)
    content = np.empty(int(sizes.sum()), np.uint8)
    write_sections(values.data, values.starts, values.stops, values.times, ends, content)
    stops = np.cumsum(sizes)
    return (content[stop - size : stop].tobytes() for stop, size in zip(stops.tolist(), sizes.tolist(), strict=True))
