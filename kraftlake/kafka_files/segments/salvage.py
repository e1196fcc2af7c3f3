"""The readable batches of a log, past damaged and missing ones, for a lenient replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.segments.batch_walk import Damage, walk
from kraftlake.kafka_files.segments.segment import ReaderPosition, Segment, decode
from kraftlake.records.batch import RecordBatch

Lost = Callable[[int, int, str], None]
"""Called with the first and the last unreadable offset, and the reason."""


def salvage(segments: Sequence[Segment], from_offset: int, to_offset: int, lost: Lost) -> Iterator[RecordBatch]:
    """Yield the readable batches that hold any offset in [from_offset, to_offset], in offset order.

    `lost` is called for gaps between segments or batches, and for damage. Of batches at the same offsets, the first one
    is taken, and `lost` is called with the start of the others; a batch of a lower epoch than the previous one is lost.
    """
    at = _LenientPosition(segments, from_offset, to_offset, lost)
    for segment in segments:
        overlaps = False
        for step in walk(segment.file, limit=segment.end_position):
            name = segment.file.name
            if isinstance(step, Damage):
                at.why = f"{name} has {step.reason} at position {step.position}"
                continue
            header = step.header
            if header.base_offset > to_offset or at.offset > to_offset:
                break
            if header.base_offset < at.offset:
                if not overlaps and header.last_offset >= from_offset:
                    lost(header.base_offset, header.base_offset, f"{name} has offset {header.base_offset} once more")
                overlaps = True
                continue
            if header.epoch < at.epoch:
                at.why = f"{name} has a batch of epoch {header.epoch} after one of epoch {at.epoch}"
                continue
            if header.last_offset < from_offset:
                at.pass_by(header.last_offset, header.epoch)
                continue
            try:
                batch = decode(segment.file, step)
            except BrokenFileError as error:
                at.why = str(error)
                continue
            at.lose(header.base_offset)
            at.pass_by(header.last_offset, header.epoch)
            yield batch
    at.lose(to_offset + 1)


class _LenientPosition(ReaderPosition):
    """The position of a reader that skips lost offsets, and the reason of the last loss."""

    def __init__(self, segments: Sequence[Segment], from_offset: int, to_offset: int, lost: Lost) -> None:
        super().__init__(segments[0].base_offset if segments else from_offset)
        self._range = (from_offset, to_offset)
        self._lost = lost
        self.why = ""

    def lose(self, before: int) -> None:
        """Report the offsets from here to `before` as lost."""
        first, last = max(self.offset, self._range[0]), min(before - 1, self._range[1])
        if first <= last:
            missing = f"offsets {first} to {last} are missing"
            self._lost(first, last, f"{missing}: {self.why}" if self.why else missing)
        self.why = ""
