"""The transactions of a log while it is cleaned: which batches and markers may go.

Source: org.apache.kafka.storage.internals.log.CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.open_transactions import ABORT, COMMIT, EndedTransaction


class CleanedTransactions:
    """Takes the batches of a log in order."""

    def __init__(self) -> None:
        self._ahead: list[tuple[int, EndedTransaction]] = []
        """The aborted transactions that have not begun yet, as a heap by first offset."""
        self._aborted: dict[int, tuple[EndedTransaction, bool]] = {}
        """The aborted transactions that have begun by producer id, and whether a batch of theirs was found."""
        self._committed: set[int] = set()
        """The producers of other transactions of which a batch was found."""
        self._retained: list[EndedTransaction] = []

    def add_aborted(self, aborted: Iterable[EndedTransaction]) -> None:
        """Add the aborted transactions of the next segment."""
        for ended in aborted:
            heappush(self._ahead, (ended.first_offset, ended))

    def may_discard(self, batch: LogBatch) -> bool:
        """Whether the records of the next batch are aborted, or it is a marker of a transaction without batches."""
        while self._ahead and self._ahead[0][0] <= batch.last_offset:
            _, ended = heappop(self._ahead)
            self._aborted.setdefault(ended.producer_id, (ended, False))
        if batch.control:
            return batch.count == 0 or self._may_discard_marker(batch)
        if not batch.transactional:
            return False
        found = self._aborted.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        self._aborted[batch.producer_id] = (found[0], True)
        return True

    def _may_discard_marker(self, batch: LogBatch) -> bool:
        kind = batch.control_type()
        if kind == ABORT:
            ended, has_batches = self._aborted.pop(batch.producer_id, (None, False))
            if ended is not None and has_batches:
                self._retained.append(ended)
                return False
            return True
        if kind != COMMIT:
            return False
        has_batches = batch.producer_id in self._committed
        self._committed.discard(batch.producer_id)
        return not has_batches

    def take_retained(self) -> list[EndedTransaction]:
        """The aborted transactions that have batches left, of the markers since the last call."""
        retained, self._retained = self._retained, []
        return retained
