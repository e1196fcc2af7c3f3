"""The metadata deltas of a part of a log, as columns. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import attrs

from kraftlake.records import RecordBatch
from kraftlake.replay import LogReader, chunks_of
from kraftlake.tables import DeltaChunk, LogReplay

_PARTS_AT_ONCE: Final = 1_000
"""The number of batches whose changes are looked at together."""


def delta_chunks(reader: LogReader, deltas: LogReplay, first: int, last: int) -> Iterator[DeltaChunk]:
    """The deltas that end in the offsets [first, last], which follow those that `deltas` has taken.

    Of a batch that goes beyond `last` they have the records up to there. Raises as `LogReplay.take_parts`, and what
    reading the log raises.
    """
    parts = iter(chunks_of(reader, first, last)) if first <= last else iter(())
    while some := list(islice(parts, _PARTS_AT_ONCE)):
        if isinstance(some[-1], RecordBatch) and some[-1].last_offset > last:
            some[-1] = _cut(some[-1], last)
        yield from deltas.take_parts(some)


def _cut(batch: RecordBatch, last: int) -> RecordBatch:
    """The beginning of a batch, up to an offset."""
    count = last + 1 - batch.base_offset
    return attrs.evolve(
        batch,
        values=batch.values[:count],
        timestamps=batch.timestamps[:count],
        control_types=batch.control_types[:count],
    )
