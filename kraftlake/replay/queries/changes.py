"""The changes of a log, one by one: a metadata delta for each log batch, one for a whole metadata transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.queries.change_fold import ChangeFold, Published
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.replay.reading.replay_base import (
    check_unbroken,
    choose_base,
    first_image_offset,
    has_beginning,
    readable_batches,
)
from kraftlake.runtime.errors import OffsetError, UsageError


class LogChanges:
    """The published changes whose last offset is in [from_offset, to_offset], in order; None is as far as the log goes.

    To be iterated once. Where `from_offset` is None and the log starts above 0, the first change is the load of the
    snapshot that covers its start. Batches of nothing but no-op records are no change. `skipped` grows with what a
    lenient replay leaves out.

    Raises OffsetError where the log lacks one of the offsets or an image to start from, BrokenFileError where offsets
    between them are missing, UsageError for a range that runs backwards; while it is iterated, what the replay of a
    record raises. A lenient one passes over what is missing or damaged.
    """

    def __init__(
        self,
        reader: LogReader,
        from_offset: int | None = None,
        to_offset: int | None = None,
        *,
        lenient: bool = False,
        cluster_id: str | None = None,
    ) -> None:
        if from_offset is not None and to_offset is not None and from_offset > to_offset:
            raise UsageError(f"The range from offset {from_offset} to {to_offset} runs backwards.")
        for offset in (from_offset, to_offset):
            if offset is not None and not reader.start_offset <= offset < reader.end_offset:
                raise OffsetError(
                    f"Offset {offset} is not in the log of {reader.name}, which holds offsets "
                    f"{reader.start_offset} to {reader.end_offset - 1}."
                )
        self._reader = reader
        self._to_offset = reader.end_offset - 1 if to_offset is None else to_offset
        self._first: Sequence[Published] = ()
        self._fold = self._begin(from_offset, lenient=lenient, cluster_id=cluster_id)
        if not lenient:
            check_unbroken(reader, self.loader.last_offset + 1, self._to_offset)

    def __repr__(self) -> str:
        return f"<LogChanges of {self._reader.name} after offset {self.loader.last_offset} to {self._to_offset}>"

    @property
    def loader(self) -> MetadataBatchLoader:
        """The loader behind the changes; before the iteration its position is before the first change of the log."""
        return self._fold.loader

    @property
    def skipped(self) -> Sequence[SkippedRecord]:
        """The records that were skipped so far."""
        return self.loader.skipped

    def __iter__(self) -> Iterator[Published]:
        """Each change as it is replayed."""
        loader = self.loader
        yield from self._first
        if loader.last_offset < self._to_offset:
            for batch in readable_batches(self._reader, loader.last_offset + 1, self._to_offset, loader.lost):
                yield from self._fold.take(batch, to_offset=self._to_offset)

    def _begin(self, from_offset: int | None, *, lenient: bool, cluster_id: str | None) -> ChangeFold:
        reader = self._reader
        fold = ChangeFold.after(reader, (from_offset or 0) - 1, lenient=lenient, cluster_id=cluster_id)
        if from_offset is None and not has_beginning(reader):
            # raises where there is no such image, and says which there are
            choose_base(reader, self._to_offset, lenient=lenient)
            first = first_image_offset(reader, reader.start_offset - 1)
            base = None if first is None else choose_base(reader, first)
            assert base is not None, "a log without its beginning has images from a snapshot on alone"
            self._first = fold.load(base)
        return fold
