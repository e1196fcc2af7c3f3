"""A log read in order, many batches at once where that pays: what an import checks, compares and writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from kraftlake import kernels
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.bulk import BULK_FROM
from kraftlake.replay.reading.log_reader import LogReader

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

Part: TypeAlias = "BatchValues | RecordBatch"
"""A batch, or data batches that follow each other."""


def parts_of(reader: LogReader, from_offset: int, to_offset: int) -> Iterator[Part]:
    """The whole batches that hold any offset of [from_offset, to_offset], in order; raises as `reader.batches` does."""
    stretches: Any = getattr(reader, "stretches", None)
    if to_offset - from_offset >= BULK_FROM and stretches is not None and kernels.available():
        for part in stretches(from_offset, to_offset):
            if isinstance(part, RecordBatch) or (part.base_offset >= from_offset and part.last_offset <= to_offset):
                yield part
            else:
                yield from (batch for batch in part.batches(from_offset) if batch.base_offset <= to_offset)
            from_offset = part.last_offset + 1
    if from_offset <= to_offset:
        yield from reader.batches(from_offset, to_offset)
