"""Which transactions of producers are open in a log, and which were aborted (KIP-98)."""

from __future__ import annotations

from collections.abc import Iterable

from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.partition_log import AbortedTransaction

_ABORT, _COMMIT = 0, 1


class Transactions:
    """Follows the batches of a log. Source: org.apache.kafka.storage.internals.log.ProducerStateManager."""

    __slots__ = ("_aborted", "_open", "_undecided")

    def __init__(self) -> None:
        self._open: dict[int, int] | None = None
        """First offset by producer id; None as long as there never was one, which is what most logs are like."""
        self._undecided: list[tuple[int, int]] = []
        """(first offset, offset of the marker) of transactions that ended, maybe not below the high watermark yet."""
        self._aborted: list[tuple[int, int, int]] = []
        """(producer id, first offset, offset of the marker)."""

    def append(self, batch: LogBatch) -> None:
        """Go past the next batch."""
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
        """Where the first transaction began that is open, or whose end is not below the high watermark."""
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
        """Begin again with what is left of the log."""
        self._open, self._undecided, self._aborted = None, [], []
        for batch in batches:
            self.append(batch)
