"""Some records of a log, which need not follow each other, with the batches that they are of. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np

from kraftlake.records.batch import RecordBatch

NO_CONTROL: Final = -1
"""The control type of a record that is no control record."""


@attrs.frozen(kw_only=True, eq=False)
class ShardRecords:
    """Records in offset order, of batches that are known as a whole though some of their records are not among these.

    Record i stands at `offsets[i]` (int64) and has the value data[starts[i]:stops[i]] (uint8; int64);
    `control_types[i]` (int32) is NO_CONTROL for a record of metadata. By batch, in order, `base_offsets` and
    `last_offsets` (int64), `epochs` (int64) and `timestamps` (int64, the largest of their records', epoch ms, -1 for
    none); `noop` (bool) is true where all records of a batch, these or not, are no-op records. There may be batches of
    which none of the records are here.
    """

    offsets: Any = attrs.field(repr=False)
    data: Any = attrs.field(repr=False)
    starts: Any = attrs.field(repr=False)
    stops: Any = attrs.field(repr=False)
    control_types: Any = attrs.field(repr=False)
    base_offsets: Any = attrs.field(repr=False)
    last_offsets: Any = attrs.field(repr=False)
    epochs: Any = attrs.field(repr=False)
    timestamps: Any = attrs.field(repr=False)
    noop: Any = attrs.field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def base_offset(self) -> int:
        """The first offset of the first batch."""
        return int(self.base_offsets[0])

    @property
    def epoch(self) -> int:
        """The epoch of the first batch."""
        return int(self.epochs[0])

    @property
    def last_epoch(self) -> int:
        """The epoch of the last batch."""
        return int(self.epochs[-1])

    def cells(self, first: int) -> dict[str, bytes]:
        """The content as bytes; `first` is an offset, none is 2^31 or more after it or before it."""
        assert not len(self) or self.starts[0] == 0, "the values lie back to back"
        batches = (self.base_offsets, self.last_offsets, self.epochs, self.timestamps, self.noop)
        return {
            "payload": self.data[: self.stops[-1] if len(self) else 0].tobytes(),
            "sizes": (self.stops - self.starts).astype(np.int32).tobytes(),
            "offsets": (self.offsets - first).astype(np.int32).tobytes(),
            "control": self.control_types.tobytes() if (self.control_types != NO_CONTROL).any() else b"",
            "batches": np.array([*batches], np.int64).tobytes(),
        }

    @classmethod
    def of_cells(
        cls, first: int, *, payload: Any, sizes: Any, offsets: Any, control: Any, batches: Any
    ) -> ShardRecords:
        """The inverse of `cells`; keeps the memory of the payload."""
        stops = np.cumsum(np.frombuffer(sizes, np.int32), dtype=np.int64)
        starts = np.zeros(len(stops), np.int64)
        starts[1:] = stops[:-1]
        types = np.frombuffer(control, np.int32)
        bases, lasts, epochs, times, noop = np.frombuffer(batches, np.int64).reshape(5, -1)
        return cls(
            offsets=np.frombuffer(offsets, np.int32) + np.int64(first),
            data=np.frombuffer(payload, np.uint8),
            starts=starts,
            stops=stops,
            control_types=types if len(types) else np.full(len(stops), NO_CONTROL, np.int32),
            base_offsets=bases,
            last_offsets=lasts,
            epochs=epochs,
            timestamps=times,
            noop=noop.astype(np.bool_),
        )

    def batch_numbers(self) -> Any:
        """The number of the batch of each record (int64[n])."""
        return np.searchsorted(self.last_offsets, self.offsets)

    def control_batches(self) -> Iterator[RecordBatch]:
        """The batches of control records."""
        numbers = self.batch_numbers()
        for number in sorted({*numbers[self.control_types != NO_CONTROL].tolist()}):
            yield self._control_batch(number, numbers)

    def _control_batch(self, number: int, numbers: Any) -> RecordBatch:
        begin, end = np.searchsorted(numbers, (number, number + 1)).tolist()
        time = int(self.timestamps[number])
        return RecordBatch(
            base_offset=int(self.base_offsets[number]),
            epoch=int(self.epochs[number]),
            timestamp=time,
            control=True,
            values=tuple(self.data[self.starts[i] : self.stops[i]].tobytes() for i in range(begin, end)),
            control_types=tuple(self.control_types[begin:end].tolist()),
            timestamps=(time,) * (end - begin),
        )
