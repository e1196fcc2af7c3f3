"""Rows of a lake's log as the values of batches, without an object per record. Imports numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.records.batch import NO_TIMESTAMP, RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.rows import from_rows, sorted_rows


def values_of_rows(table: pa.Table) -> Iterator[BatchValues | RecordBatch]:
    """The same as `from_rows`: runs of data batches as values, control batches one by one; raises as it does."""
    rows = sorted_rows(table)
    offsets, batches = (rows[name].to_numpy() for name in ("offset", "batch"))
    epochs, control = rows["epoch"].to_numpy(), rows["control"].to_numpy()
    count = len(offsets)
    if not count:
        return
    begins = np.flatnonzero(np.diff(batches, prepend=batches[0] - 1))
    whole = (
        (offsets == offsets[0] + np.arange(count)).all()
        and (offsets[begins] == batches[begins]).all()
        and _changes_only_at(begins, epochs)
        and _changes_only_at(begins, control)
        and (np.diff(epochs) >= 0).all()
    )
    if not whole:
        yield from from_rows(table)
        return
    times = rows["timestamp"].cast(pa.int64()).fill_null(NO_TIMESTAMP * 1000).to_numpy() // 1000
    latest = np.maximum.reduceat(times, begins)
    turns = np.flatnonzero(np.diff(control[begins])) + 1
    for first, last in zip([0, *turns.tolist()], [*turns.tolist(), len(begins)], strict=True):
        start = int(begins[first])
        stop = int(begins[last]) if last < len(begins) else count
        if control[start]:
            yield from from_rows(rows.slice(start, stop - start))
            continue
        yield BatchValues(
            base_offset=int(offsets[start]),
            **_payloads(rows.slice(start, stop - start)),
            times=times[start:stop].astype(np.int64),
            last_offsets=np.append(begins[first + 1 : last], stop) + offsets[0] - 1,
            epochs=epochs[begins[first:last]].astype(np.int64),
            timestamps=latest[first:last].astype(np.int64),
            sizes=np.zeros(last - first, np.int64),
        )


def _changes_only_at(begins: Any, values: Any) -> bool:
    changes = np.flatnonzero(np.diff(values)) + 1
    places = np.searchsorted(begins, changes)
    return bool((places < len(begins)).all() and (begins[places] == changes).all())


def _payloads(rows: pa.Table) -> dict[str, Any]:
    column = rows["payload"].cast(pa.large_binary()).combine_chunks()
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    _, bounds, data = array.buffers()
    places = np.frombuffer(bounds, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    # Copies, so that arrays of all origins are alike to the compiled code.
    return {"data": content, "starts": places[:-1].copy(), "stops": places[1:].copy()}
