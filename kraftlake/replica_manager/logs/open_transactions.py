"""The open and the aborted transactions of a log (KIP-98)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_values import AbortedTransaction

ABORT, COMMIT = 0, 1
"""The control types of the markers that end a transaction."""


class EndedTransaction(NamedTuple):
    """A transaction whose marker is at `last_offset`; `last_stable_offset` is the log's, up to the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Transactions:
    """The transactions in the batches of a log. Source: org.apache.kafka.storage.internals.log.ProducerStateManager."""

    __slots__ = ("_aborted", "_open", "_undecided")

    def __init__(self) -> None:
        self._open: dict[int, int] | None = None
        """The first offset of each open transaction by producer id; None for a log without any transaction so far."""
        self._undecided: deque[tuple[int, int]] = deque()
        """(first offset, marker offset) of ended transactions whose marker may be at or above the high watermark.

        Sorted by marker offset.
        """
        self._aborted: list[EndedTransaction] = []

    def append(self, batches: Iterable[LogBatch]) -> list[EndedTransaction]:
        """Add the batches of one append; returns the transactions that they abort.

        As in Kafka, a transaction that begins in an append counts as open for all transactions that end in it.
        """
        going: list[tuple[int, int]] | None = None
        ended: list[tuple[int, int, LogBatch]] = []
        for batch in batches:
            if not batch.transactional or (batch.control and batch.count == 0):  # without a record no marker is left
                continue
            if self._open is None:
                self._open = {}
            if going is None:
                going = sorted((first, id_) for id_, first in self._open.items())
            if batch.control:
                kind = batch.control_type()
                if kind in (ABORT, COMMIT) and batch.producer_id in self._open:
                    ended.append((kind, self._open.pop(batch.producer_id), batch))
            elif batch.producer_id not in self._open:
                self._open[batch.producer_id] = batch.base_offset
                going.append((batch.base_offset, batch.producer_id))
        aborted: list[EndedTransaction] = []
        for kind, first, marker in ended:
            assert going is not None
            others = (begin for begin, id_ in going if id_ != marker.producer_id)
            stable = next(others, marker.last_offset + 1)
            going.remove((first, marker.producer_id))
            self._undecided.append((first, marker.base_offset))
            if kind == ABORT:
                aborted.append(EndedTransaction(marker.producer_id, first, marker.base_offset, stable))
        self._aborted += aborted
        return aborted

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset of the earliest transaction that has not ended below the high watermark."""
        if self._open is None:
            return high_watermark
        self.forget_decided(high_watermark)
        return min([high_watermark, *self._open.values(), *(first for first, _ in self._undecided)])

    def forget_decided(self, high_watermark: int) -> None:
        """Forget the ended transactions whose marker is below the high watermark.

        Due after each move of the high watermark: a follower, whose last stable offset is never read, would keep all of
        them.
        """
        while self._undecided and self._undecided[0][1] < high_watermark:
            self._undecided.popleft()

    def aborted_between(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions with records in [start, end), by first offset."""
        found = [
            (of.first_offset, of.producer_id)
            for of in self._aborted
            if of.last_offset >= start and of.first_offset < end
        ]
        return tuple(AbortedTransaction(id_, first) for first, id_ in sorted(found))

    def replace_aborted(self, start: int, end: int, aborted: Iterable[EndedTransaction]) -> None:
        """Replace the aborted transactions whose markers are in [start, end)."""
        others = [of for of in self._aborted if not start <= of.last_offset < end]
        self._aborted = sorted([*others, *aborted], key=lambda of: of.last_offset)

    def forget_below(self, offset: int) -> None:
        """Forget the aborted transactions whose records are all below the log start offset."""
        self._aborted = [ended for ended in self._aborted if ended.last_offset >= offset]

    def load(self, open_: Mapping[int, int], aborted: Iterable[EndedTransaction] = ()) -> None:
        """Replace all transactions: first offsets of open ones by producer id, and aborted ones in the log's order."""
        self._open, self._undecided, self._aborted = dict(open_) or None, deque(), list(aborted)
