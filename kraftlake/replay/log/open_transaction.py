"""Metadata transactions: records within one take effect at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from kraftlake.records.metadata_records import (
    METADATA_RECORDS,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kraftlake.records.serde import AnyMessage
from kraftlake.runtime.errors import ReplayError

T = TypeVar("T")

TRANSACTION_MARKS: Final = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
"""The types of the records that begin or end a transaction."""
_API_KEYS: Final = tuple(mark.API_KEY for mark in TRANSACTION_MARKS)


class OpenTransaction(Generic[T]):
    """The open metadata transaction (KIP-868) at an offset of a log, if any.

    Items within the transaction are held until its EndTransactionRecord releases them or its AbortTransactionRecord
    drops them. Source: org.apache.kafka.image.loader.MetadataBatchLoader.
    """

    def __init__(self) -> None:
        self.begin_offset: int | None = None
        """The offset of its BeginTransactionRecord; None where no transaction is open."""
        self.aborted: tuple[int, int] | None = None
        """The first and last offset of the newest aborted transaction."""
        self._held: list[T] = []

    def take(self, message: AnyMessage, offset: int, item: T) -> list[T]:
        """Process the next record, at an offset, and its item; returns the items that take effect there, in order.

        Raises as `mark`.
        """
        if isinstance(message, TRANSACTION_MARKS):
            return self.mark(message.API_KEY, offset)
        if self.begin_offset is None:
            return [item]
        self.hold(item)
        return []

    def hold(self, part: T) -> None:
        """Hold one more item."""
        assert self.begin_offset is not None, "items are held within a transaction only"
        self._held.append(part)

    def held(self) -> Sequence[T]:
        """The items of the open transaction, in order."""
        return self._held

    def mark(self, api_key: int, offset: int) -> list[T]:
        """Process a begin, end or abort record at an offset; returns the items that take effect there, in order.

        Raises ReplayError with the offset for a record that contradicts those before it; it then changes nothing.
        """
        assert api_key in _API_KEYS, "it is a mark"
        begins, begin = api_key == BeginTransactionRecord.API_KEY, self.begin_offset
        fault = ""
        if begins and begin is not None:
            fault = f", BEGIN_TRANSACTION_RECORD: the transaction that began at offset {begin} is still open."
        elif not begins and begin is None:
            fault = f": {METADATA_RECORDS[api_key].__name__} without a BeginTransactionRecord before it."
        if fault:
            raise ReplayError(f"Offset {offset}{fault}", offset=offset)
        if begins or begin is None:
            self.begin_offset = offset
            return []
        held, self._held, self.begin_offset = self._held, [], None
        if api_key == EndTransactionRecord.API_KEY:
            return held
        self.aborted = begin, offset
        return []
