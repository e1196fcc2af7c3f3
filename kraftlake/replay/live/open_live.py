"""The live log of a source that grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.live.live_directory import LiveDirectory
from kraftlake.replay.live.live_lake import LiveLake
from kraftlake.replay.live.live_quorum import LiveQuorum
from kraftlake.replay.reading.log_reader import LogReader
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.replay.live.committed_tail import AskQuorum
    from kraftlake.replay.queries.source import LogSource


class LiveLog(Protocol):
    """A log that grows, read step by step by one thread. A replay starts from `reader`; `step` goes on at its end."""

    @property
    def reader(self) -> LogReader:
        """The log as it was at the beginning: its committed batches, and the snapshots beside them."""
        ...

    @property
    def seen_to(self) -> int:
        """The offset after the last whole batch that was seen, whether or not it is known to be committed."""
        ...

    @property
    def trouble(self) -> str | None:
        """The reason why no records arrive, as a sentence, while that may pass; None if nothing is wrong."""
        ...

    def step(self) -> Sequence[RecordBatch]:
        """The next committed batches, a bounded number, without waiting; an empty sequence where there are none yet.

        They follow those of the step before without a gap, the first ones those of `reader`. Raises a KraftlakeError,
        one sentence, where the log can't be followed any further.
        """
        ...

    def close(self) -> None:
        """Release what is held open."""
        ...


def open_live(
    source: LogSource, *, poll: float, include_uncommitted: bool = False, quorum: AskQuorum | None = None
) -> LiveLog:
    """Follow a source, as it was opened, from its end on: a lake, the directory of a node, or a quorum.

    A step runs every `poll` seconds. For a directory, batches that are known to be committed are returned, also by the
    answer of `quorum`, or all with `include_uncommitted`. Raises UsageError for a source that does not grow, and where
    its kind has no use for an option.
    """
    if include_uncommitted and quorum is not None:
        raise UsageError("A quorum tells what is committed: that, or everything (the uncommitted too), not both.")
    reader = source.reader
    if isinstance(reader, LakeReader):
        if include_uncommitted or quorum is not None:
            raise UsageError(
                f"{source.name} is a lake, of which everything is taken: quorum and include_uncommitted are for the "
                "directory of a node."
            )
        return LiveLake(reader, poll=poll)
    if isinstance(reader, MetadataDirectory) and source.observer is not None:
        if include_uncommitted or quorum is not None:
            raise UsageError(f"{source.name} is a quorum, which tells by itself what is committed.")
        return LiveQuorum(reader, source.observer())
    if isinstance(reader, MetadataDirectory) and source.kind is SourceKind.DIRECTORY:
        return LiveDirectory(reader, include_uncommitted=include_uncommitted, quorum=quorum)
    raise UsageError(f"{source.name} can't be watched: only a lake, the directory of a node and a quorum grow.")
