"""Records as messages, one by one: for those that no compiled code takes."""

from __future__ import annotations

from kraftlake.records.serde import AnyMessage, decode_value
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords


def message_at(records: EffectiveRecords, index: int) -> AnyMessage:
    """What a record says. Raises CorruptDataError with its offset where it can't be decoded."""
    try:
        return decode_value(records.value(index)).message
    except CorruptDataError as error:
        offset = int(records.offsets[index])
        raise CorruptDataError(f"The record at offset {offset} can't be decoded: {error}") from error
