"""No-op records: the active controller appends one twice a second, so that they are most of a quiet cluster's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kraftlake.records.metadata_records import NoOpRecord

if TYPE_CHECKING:
    from kraftlake.records.batch import RecordBatch

NO_OP_VALUE: Final = bytes((1, NoOpRecord.API_KEY, 0, 0))
"""The value of a no-op record as Kafka writes it. Any other one is decoded, as it may hold fields or be damaged."""


def has_no_ops_alone(batch: RecordBatch) -> bool:
    """Whether a batch changes nothing: it has no-op records alone."""
    return not batch.control and all(value == NO_OP_VALUE for value in batch.values)


def are_no_ops(data: Any, starts: Any, stops: Any) -> Any:
    """A mask (bool) of the values data[starts[i]:stops[i]] (uint8; int64) that are NO_OP_VALUE."""
    found = stops - starts == len(NO_OP_VALUE)
    for place, byte in enumerate(NO_OP_VALUE):
        found[found] = data[starts[found] + place] == byte
    return found
