"""The errors of a single record, and the names of records in messages."""

from __future__ import annotations

from typing import Final

from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, UnknownRecord, decode_value
from kraftlake.runtime.errors import CorruptDataError, ReplayError, UnknownRecordError


class UndecodableRecordError(CorruptDataError):
    """A value of the log that can't be decoded; `offset` is None where it is a snapshot's."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


RECORD_FAULTS: Final = (CorruptDataError, ReplayError, UnknownRecordError)
"""Errors of a record, which a lenient replay skips."""
UNDECODABLE: Final = "UNDECODABLE"
UNREADABLE: Final = "UNREADABLE"
"""The type of offsets that are missing, or in bytes that are not a batch."""


def decode_record(value: bytes, offset: int) -> AnyMessage:
    """The message in a value of the log; UndecodableRecordError with its offset where it can't be decoded."""
    try:
        return decode_value(value).message
    except CorruptDataError as error:
        message = f"The record at offset {offset} can't be decoded: {error}"
        raise UndecodableRecordError(message, offset=offset) from error


def type_of(message: AnyMessage) -> str:
    """The type of a record, as `kraftlake log` prints it."""
    return "UNKNOWN" if isinstance(message, UnknownRecord) else type_name(type(message))
