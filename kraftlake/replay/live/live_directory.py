"""Reads a directory to which a node writes its log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import attrs

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.follow import TruncatedLogError
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.live.committed_tail import AskQuorum, CommittedTail, committed_end, retried
from kraftlake.replay.reading.committed import CommittedTo
from kraftlake.runtime.errors import KraftlakeError

_BATCHES: Final = 256
"""The most batches of a step."""


class LiveDirectory:
    """Returns the batches of a directory once known to be committed, or all whole batches: see `CommittedTail`.

    Batches that the node truncates were never returned, unless all are. Where its log ends before a returned batch,
    `trouble` says so until the batch is there again; where other batches take its place, TruncatedLogError ends the
    steps. Steps also raise OffsetError where the node deleted batches that were not read yet, NotASourceError where the
    directory is gone, BrokenFileError for damage with sound data after it.
    """

    def __init__(
        self, directory: MetadataDirectory, *, include_uncommitted: bool = False, quorum: AskQuorum | None = None
    ) -> None:
        """Initialize at the end of the committed log in a directory as it was opened."""
        end = directory.end_offset if include_uncommitted else committed_end(directory, quorum)
        self.reader = attrs.evolve(directory, end_offset=end, torn=None)
        self.trouble: str | None = None
        self._epoch = epoch_before(end, self.reader)
        self._seen_snapshots: set[str] = set()
        self._include_uncommitted = include_uncommitted
        self._tail = CommittedTail(
            directory.path,
            end,
            epoch=self._epoch,
            known=CommittedTo(-1 if include_uncommitted else end),
            include_uncommitted=include_uncommitted,
            quorum=quorum,
        )

    @property
    def seen_to(self) -> int:
        """The offset after the last whole batch in the directory."""
        return self._tail.seen_to

    def step(self) -> Sequence[RecordBatch]:
        """The next batches; an empty list for none yet."""
        try:
            batches = retried(self._next_batches)
        except TruncatedLogError as fault:
            if fault.replaced:
                raise self._replaced(fault) from None
            self.trouble = str(fault)
            return []
        self.trouble = None
        if batches:
            self._epoch = batches[-1].epoch
        return batches

    def close(self) -> None:
        """A no-op: no file is held open."""

    def _next_batches(self) -> list[RecordBatch]:
        batches: list[RecordBatch] = []
        try:
            batches.extend(islice(self._tail.batches(self._bound()), _BATCHES))
        except KraftlakeError:  # the next step raises it again: what was read before it comes first
            if not batches:
                raise
        return batches

    def _bound(self) -> int | None:
        found = [] if self._include_uncommitted else self._tail.snapshots(self._seen_snapshots)
        try:
            bound = self._tail.bound(found)
        except TruncatedLogError:
            self._tail.rescan(self._epoch)
            bound = self._tail.bound(found)
        if bound is not None:  # up to there a snapshot proves nothing more
            self._seen_snapshots |= {snapshot.name for snapshot in found if snapshot.end_offset <= bound}
        return bound

    def _replaced(self, fault: TruncatedLogError) -> TruncatedLogError:
        if not self._include_uncommitted:
            return fault
        return TruncatedLogError(
            f"{fault}. Uncommitted records were included, so what they changed may never have happened: begin anew.",
            fault.offset,
            replaced=True,
        )


def epoch_before(offset: int, directory: MetadataDirectory) -> int:
    """The epoch of the batch or the snapshot that ends before an offset; −1 at the beginning of a log."""
    if offset > directory.start_offset:
        return next(directory.batches(offset - 1, offset - 1)).epoch
    return max((one.epoch for one in directory.snapshots if one.end_offset == offset and not one.bootstrap), default=-1)
