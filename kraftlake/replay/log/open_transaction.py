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
        fault = self.fault_of(api_key, offset)
        if fault is not None:
            raise fault
        if api_key == BeginTransactionRecord.API_KEY:
            self.begin_offset = offset
            return []
        begin, held = self.begin_offset, self._held
        assert begin is not None, "a transaction is open"
        self._held, self.begin_offset = [], None
        if api_key == EndTransactionRecord.API_KEY:
            return held
        self.aborted = begin, offset
        return []

    def fault_of(self, api_key: int, offset: int) -> ReplayError | None:
        """The error that `mark` would raise, None where it would raise none."""
        if api_key == BeginTransactionRecord.API_KEY:
            if self.begin_offset is None:
                return None
            return ReplayError(
                f"Offset {offset}, BEGIN_TRANSACTION_RECORD: the transaction that began at offset "
                f"{self.begin_offset} is still open.",
                offset=offset,
            )
        name = METADATA_RECORDS[api_key].__name__
        assert api_key in (EndTransactionRecord.API_KEY, AbortTransactionRecord.API_KEY), f"{name} is no mark"
        if self.begin_offset is not None:
            return None
        return ReplayError(f"Offset {offset}: {name} without a BeginTransactionRecord before it.", offset=offset)
