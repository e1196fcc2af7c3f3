"""Where in a log each leader epoch began. Source: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache."""

from __future__ import annotations

from bisect import bisect_right

from kraftlake.replica_manager.logs.partition_log import OffsetAndEpoch


class LeaderEpochs:
    """Pairs of epoch and start offset, both strictly rising."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    def __repr__(self) -> str:
        return f"<LeaderEpochs {self.entries()}>"

    def entries(self) -> list[tuple[int, int]]:
        """All pairs."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int | None:
        """The last epoch."""
        return self._epochs[-1] if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note where an epoch began; entries that contradict it, of later epochs or offsets, go."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} can't start at offset {start_offset}")
        if self._epochs and self._epochs[-1] == epoch and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """Where the largest epoch at or below `epoch` ended; None for one after the last, and where none is known.

        For an epoch before the first, it is that epoch itself, which ended where the first began.
        """
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return None
        if epoch == self._epochs[-1]:
            return OffsetAndEpoch(log_end_offset, epoch)
        place = bisect_right(self._epochs, epoch)
        return OffsetAndEpoch(self._starts[place], self._epochs[place - 1] if place else epoch)

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that began at or after `end_offset`."""
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that ended at or before `start_offset`; the one it lies in starts there."""
        place = bisect_right(self._starts, start_offset) - 1
        if place >= 0:
            del self._epochs[:place], self._starts[:place]
            self._starts[0] = start_offset

    def clear(self) -> None:
        """Forget all."""
        self._epochs.clear()
        self._starts.clear()
