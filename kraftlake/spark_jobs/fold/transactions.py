"""Metadata transactions in a part of a log: what of it takes effect, and when. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from kraftlake.runtime.errors import ReplayError
from kraftlake.spark_jobs.fold.log_values import LogValues


class TransactionFilter:
    """Lets values pass in offset order; those inside of a metadata transaction (KIP-868) when it ends, or never.

    The marks of transactions must be among the values, whatever part of the log these are. Source of the semantics:
    `kraftlake.replay.MetadataBatchLoader`.
    """

    def __init__(self) -> None:
        self.open_since: int | None = None
        """The offset of the BeginTransactionRecord of the transaction that is open."""
        self._held: list[LogValues] = []

    def take(self, values: LogValues) -> Iterator[tuple[LogValues, int | None]]:
        """What takes effect, without marks, and the offset at which it does; None: each record at its own.

        Raises ReplayError naming the offset of a mark that contradicts those before it.
        """
        keys = values.keys
        done = 0
        marks = (keys >= BeginTransactionRecord.API_KEY) & (keys <= AbortTransactionRecord.API_KEY)
        for place in np.flatnonzero(marks).tolist():
            yield from self._pass(values.part(done, place))
            yield from self._mark(values, place)
            done = place + 1
        yield from self._pass(values.part(done, len(values)))

    def _pass(self, values: LogValues) -> Iterator[tuple[LogValues, int | None]]:
        if not len(values):
            return
        if self.open_since is None:
            yield values, None
        else:
            self._held.append(values)

    def _mark(self, values: LogValues, place: int) -> Iterator[tuple[LogValues, int | None]]:
        offset, message = int(values.offsets[place]), values.message(place)
        if isinstance(message, BeginTransactionRecord):
            if self.open_since is not None:
                raise ReplayError(
                    f"Offset {offset}, BEGIN_TRANSACTION_RECORD: the transaction that began at offset "
                    f"{self.open_since} is still open.",
                    offset=offset,
                )
            self.open_since = offset
            return
        if self.open_since is None:
            raise ReplayError(
                f"Offset {offset}: {type(message).__name__} without a BeginTransactionRecord before it.", offset=offset
            )
        held, self._held, self.open_since = self._held, [], None
        if isinstance(message, EndTransactionRecord):
            for part in held:
                yield part, offset
