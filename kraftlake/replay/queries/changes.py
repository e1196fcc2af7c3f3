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
        self._reader = reader
        self._to_offset = reader.end_offset - 1 if to_offset is None else to_offset
        self._first: Sequence[Published] = ()
        after = begin_of_range(reader, from_offset, to_offset, lenient=lenient)
        is_load = from_offset is None and after >= 0
        self._fold = ChangeFold.after(reader, -1 if is_load else after, lenient=lenient, cluster_id=cluster_id)
        if is_load:
            base = choose_base(reader, after)
            assert base is not None, "a log without its beginning has images from a snapshot on alone"
            self._first = self._fold.load(base)
        if not lenient:
            check_unbroken(reader, after + 1, self._to_offset)

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


def begin_of_range(reader: LogReader, from_offset: int | None, to_offset: int | None, *, lenient: bool = False) -> int:
    """The offset after which the changes of a range begin, of which the log has an image; -1 is the empty one.

    Where `from_offset` is None and the log starts above 0, it is that of the snapshot that covers its start. Raises as
    `LogChanges` does at once.
    """
    if from_offset is not None and to_offset is not None and from_offset > to_offset:
        raise UsageError(f"The range from offset {from_offset} to {to_offset} runs backwards.")
    for offset in (from_offset, to_offset):
        if offset is not None and not reader.start_offset <= offset < reader.end_offset:
            raise OffsetError(
                f"Offset {offset} is not in the log of {reader.name}, which holds offsets "
                f"{reader.start_offset} to {reader.end_offset - 1}."
            )
    last, after = reader.end_offset - 1 if to_offset is None else to_offset, (from_offset or 0) - 1
    if from_offset is None and not has_beginning(reader):
        # raises where there is no such image, and says which there are
        choose_base(reader, last, lenient=lenient)
        first = first_image_offset(reader, reader.start_offset - 1)
        assert first is not None, "there is an image further on"
        after = first
    return after
