"""Metadata transactions in parts of a log that hold many records each: what takes effect, and where. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.replay.loader.transactions import OpenTransaction

BEGIN: Final = BeginTransactionRecord.API_KEY
"""The api key of the first kind of marks; those of the others follow."""


class Records(Protocol):
    """Records in the order of the log."""

    def part(self: P, first: int, last: int) -> P:
        """The records [first, last)."""

    def kept(self: P) -> P:
        """The same, to be held for long: what else its memory holds is not kept alive."""

    @property
    def offsets(self) -> Any:
        """The offset of each (int64)."""

    def value(self, place: int, /) -> bytes:
        """One record's value."""

    def __len__(self) -> int: ...


P = TypeVar("P", bound=Records)


class TransactionFilter(Generic[P]):
    """Lets records pass in offset order; those inside of a metadata transaction when it ends, or never.

    The marks of transactions must be among them, whatever part of the log these are. One in a version that this
    release doesn't know is no mark but a record as others.
    """

    def __init__(self) -> None:
        self._open = OpenTransaction[P]()

    @property
    def open_since(self) -> int | None:
        """The offset of the BeginTransactionRecord of the transaction that is open."""
        return self._open.begin_offset

    def take(self, records: P, keys: Any) -> Iterator[tuple[list[P], int | None]]:
        """What takes effect, without marks: at the mark whose place is given, or each record where it stands (None).

        `keys` are the api keys of the records. Raises ReplayError naming the offset of a mark that contradicts those
        before it, CorruptDataError naming that of one which can't be decoded.
        """
        done = 0
        for place in marks_among(keys).tolist():
            offset = int(records.offsets[place])
            message = decode_record(records.value(place), offset)
            if isinstance(message, UnknownRecord):
                continue
            yield from self._pass(records, done, place)
            held = self._open.mark(message.API_KEY, offset)
            if held:
                yield held, place
            done = place + 1
        yield from self._pass(records, done, len(records))

    def _pass(self, records: P, first: int, last: int) -> Iterator[tuple[list[P], int | None]]:
        if first == last:
            return
        part = records if last - first == len(records) else records.part(first, last)
        if self._open.begin_offset is None:
            yield [part], None
        else:
            self._open.hold(part.kept())


def marks_among(keys: Any) -> Any:
    """The places (int64) of the marks of metadata transactions among the api keys of records."""
    return np.flatnonzero((keys >= BEGIN) & (keys <= AbortTransactionRecord.API_KEY))


def open_around(marks: Any, in_transaction: bool) -> Any:
    """How many transactions (int64[n + 1]), 0 or 1, are open in front of n marks and behind the last.

    `marks` are the marks' api keys; `in_transaction` says whether one is open in front of the first.
    """
    return int(in_transaction) + np.append(0, np.cumsum(np.where(marks == BEGIN, 1, -1)))
