"""The open and the aborted transactions of a log (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterable

from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.partition_log import AbortedTransaction

_ABORT, _COMMIT = 0, 1


class Transactions:
    """The transactions in the batches of a log. Source: org.apache.kafka.storage.internals.log.ProducerStateManager."""

    __slots__ = ("_aborted", "_open", "_undecided")

    def __init__(self) -> None:
        self._open: dict[int, int] | None = None
        """The first offset of each open transaction by producer id; None in a log that never had a transaction."""
        self._undecided: list[tuple[int, int]] = []
        """(first offset, marker offset) of ended transactions whose marker may be at or above the high watermark."""
        self._aborted: list[tuple[int, int, int]] = []
        """(producer id, first offset, marker offset)."""

    def append(self, batch: LogBatch) -> None:
        """Add the next batch."""
        if not batch.transactional:
            return
        if self._open is None:
            self._open = {}
        if not batch.control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        kind = batch.control_type()
        if kind not in (_ABORT, _COMMIT):
            return
        first = self._open.pop(batch.producer_id, None)
        if first is None:
            return
        self._undecided.append((first, batch.base_offset))
        if kind == _ABORT:
            self._aborted.append((batch.producer_id, first, batch.base_offset))

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset of the earliest transaction that has not ended below the high watermark."""
        if self._open is None:
            return high_watermark
        self._undecided = [pair for pair in self._undecided if pair[1] >= high_watermark]
        firsts = [*self._open.values(), *(first for first, _ in self._undecided)]
        return min([high_watermark, *firsts])

    def aborted_between(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions with records in [start, end), by first offset."""
        found = [(first, id_) for id_, first, marker in self._aborted if marker >= start and first < end]
        return tuple(AbortedTransaction(id_, first) for first, id_ in sorted(found))

    def rebuild(self, batches: Iterable[LogBatch]) -> None:
        """Rebuild from the batches of a truncated log."""
        self._open, self._undecided, self._aborted = None, [], []
        for batch in batches:
            self.append(batch)
