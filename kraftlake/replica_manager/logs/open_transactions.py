"""The open and the aborted transactions of a log (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.partition_log import AbortedTransaction

_ABORT, _COMMIT = 0, 1


class EndedTransaction(NamedTuple):
    """A transaction whose marker is at `last_offset`; `last_stable_offset` is that of the log up to the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Transactions:
    """The transactions in the batches of a log. Source: org.apache.kafka.storage.internals.log.ProducerStateManager."""

    __slots__ = ("_aborted", "_open", "_undecided")

    def __init__(self) -> None:
        self._open: dict[int, int] | None = None
        """The first offset of each open transaction by producer id; None in a log that never had a transaction."""
        self._undecided: list[tuple[int, int]] = []
        """(first offset, marker offset) of ended transactions whose marker may be at or above the high watermark."""
        self._aborted: list[EndedTransaction] = []

    def append(self, batch: LogBatch) -> EndedTransaction | None:
        """Add the next batch; returns the transaction that it aborts."""
        if not batch.transactional:
            return None
        if self._open is None:
            self._open = {}
        if not batch.control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return None
        kind = batch.control_type()
        if kind not in (_ABORT, _COMMIT):
            return None
        first = self._open.pop(batch.producer_id, None)
        if first is None:
            return None
        self._undecided.append((first, batch.base_offset))
        if kind == _COMMIT:
            return None
        stable = min(self._open.values(), default=batch.last_offset + 1)
        ended = EndedTransaction(batch.producer_id, first, batch.base_offset, stable)
        self._aborted.append(ended)
        return ended

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset of the earliest transaction that has not ended below the high watermark."""
        if self._open is None:
            return high_watermark
        self._undecided = [pair for pair in self._undecided if pair[1] >= high_watermark]
        firsts = [*self._open.values(), *(first for first, _ in self._undecided)]
        return min([high_watermark, *firsts])

    def aborted_between(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions with records in [start, end), by first offset."""
        found = [
            (of.first_offset, of.producer_id)
            for of in self._aborted
            if of.last_offset >= start and of.first_offset < end
        ]
        return tuple(AbortedTransaction(id_, first) for first, id_ in sorted(found))

    def load(self, open_: Mapping[int, int], aborted: Iterable[EndedTransaction] = ()) -> None:
        """Replace all: the first offsets of open transactions by producer id, and aborted ones in the log's order."""
        self._open, self._undecided, self._aborted = dict(open_) or None, [], list(aborted)
