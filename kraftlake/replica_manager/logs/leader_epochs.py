"""The start offsets of a log's leader epochs. Source: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable

import attrs

from kraftlake.records.offset_and_epoch import OffsetAndEpoch


@attrs.define(eq=False, repr=False, weakref_slot=False)
class LeaderEpochs:
    """Pairs of epoch and start offset, both strictly increasing."""

    _on_change: Callable[[list[tuple[int, int]]], None] | None = None
    """Called with all pairs after each change."""
    _epochs: list[int] = attrs.field(factory=list, init=False)
    _starts: list[int] = attrs.field(factory=list, init=False)

    def __repr__(self) -> str:
        return f"<LeaderEpochs {self.entries()}>"

    def entries(self) -> list[tuple[int, int]]:
        """All pairs."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int | None:
        """The last epoch."""
        return self._epochs[-1] if self._epochs else None

    def first_at(self, log_start_offset: int) -> int | None:
        """The first epoch, if it is known from the start of the log on."""
        return self._epochs[0] if self._starts and self._starts[0] <= log_start_offset else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note the start offset of an epoch; entries with a later or equal epoch or offset are removed."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} can't start at offset {start_offset}")
        if self._epochs and self._epochs[-1] == epoch and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self._changed()

    def correct(self, epoch: int, first: int, last: int) -> None:
        """Note that the records from `first` to `last` have `epoch`, and remove contradicting entries."""
        known = self.entries()
        fitting = [
            (other, start)
            for other, start in known
            if (start <= first and other <= epoch) or (start > last and other > epoch)
        ]
        if epoch not in dict(fitting):
            insort(fitting, (epoch, first))
        if fitting != known:
            self.load(fitting)
            self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """The end of the largest epoch at or below `epoch`; None for an epoch after the last, and without epochs.

        For an epoch before the first, the answer is that epoch itself, which ends at the start of the first.
        """
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return None
        if epoch == self._epochs[-1]:
            return OffsetAndEpoch(log_end_offset, epoch)
        place = bisect_right(self._epochs, epoch)
        return OffsetAndEpoch(self._starts[place], self._epochs[place - 1] if place else epoch)

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that start at or after `end_offset`."""
        if self._starts and self._starts[-1] >= end_offset:
            keep = bisect_left(self._starts, end_offset)
            del self._epochs[keep:], self._starts[keep:]
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs that end at or before `start_offset`; the epoch that contains it starts there."""
        place = bisect_right(self._starts, start_offset) - 1
        if place > 0 or (place == 0 and self._starts[0] < start_offset):
            del self._epochs[:place], self._starts[:place]
            self._starts[0] = start_offset
            self._changed()

    def clear(self) -> None:
        """Remove all epochs."""
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self._changed()

    def load(self, entries: Iterable[tuple[int, int]]) -> None:
        """Replace all pairs by stored ones."""
        self._epochs, self._starts = [], []
        for epoch, start in entries:
            self._epochs.append(epoch)
            self._starts.append(start)

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.entries())
