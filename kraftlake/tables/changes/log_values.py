"""Values of a log's records with their offsets, which need not follow each other. Imports numpy."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kraftlake.records.serde import AnyMessage
from kraftlake.replay.loader.record_faults import decode_record

NO_KEY = 255
"""What `keys` says of a value without a plain frame: no type of Kafka's has this key."""


@attrs.frozen(kw_only=True, eq=False)
class LogValues:
    """Record i of the log's, in offset order, has the offset offsets[i] and the value data[starts[i]:stops[i]].

    `data` is uint8, all else int64.
    """

    offsets: Any = attrs.field(repr=False)
    data: Any = attrs.field(repr=False)
    starts: Any = attrs.field(repr=False)
    stops: Any = attrs.field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def packed(cls, *, first_offset: int, offsets: bytes, payload: bytes, sizes: bytes) -> LogValues:
        """What a chunk holds: values back to back, their sizes (int32) and offsets after the first one's (int32)."""
        stops = np.cumsum(np.frombuffer(sizes, np.int32), dtype=np.int64)
        starts = np.zeros(len(stops), np.int64)
        starts[1:] = stops[:-1]
        return cls(
            offsets=np.frombuffer(offsets, np.int32) + np.int64(first_offset),
            data=np.frombuffer(payload, np.uint8),
            starts=starts,
            stops=stops,
        )

    @property
    def keys(self) -> Any:
        """uint8[n]: the api key of each, NO_KEY where the frame isn't of three plain bytes."""
        long_enough = self.stops - self.starts >= 3
        places = np.where(long_enough, self.starts, 0)
        if not long_enough.any():
            return np.full(len(self), NO_KEY, np.uint8)
        frame = self.data[places[:, None] + np.arange(3)]
        plain = long_enough & (frame[:, 0] == 1) & (frame[:, 1] < 0x80) & (frame[:, 2] < 0x80)
        return np.where(plain, frame[:, 1], np.uint8(NO_KEY))

    def part(self, first: int, last: int) -> LogValues:
        """The records [first, last)."""
        return LogValues(
            offsets=self.offsets[first:last],
            data=self.data,
            starts=np.ascontiguousarray(self.starts[first:last]),
            stops=np.ascontiguousarray(self.stops[first:last]),
        )

    def kept(self) -> LogValues:
        """Itself: what one chunk holds is little."""
        return self

    def value(self, place: int) -> bytes:
        """One record's value."""
        value: bytes = self.data[self.starts[place] : self.stops[place]].tobytes()
        return value

    def message(self, place: int) -> AnyMessage:
        """One record, decoded; CorruptDataError with its offset where it can't be."""
        return decode_record(self.value(place), int(self.offsets[place]))
