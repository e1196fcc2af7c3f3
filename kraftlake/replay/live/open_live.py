"""The live log of a source that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from kraftlake.kafka_files.directory import MetadataDirectory
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.live.live_directory import LiveDirectory
from kraftlake.replay.live.live_lake import LiveLake
from kraftlake.replay.live.live_quorum import LiveQuorum
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.replay.live.committed_tail import AskQuorum
    from kraftlake.replay.queries.source import LogSource


LiveLog: TypeAlias = LiveDirectory | LiveLake | LiveQuorum
"""A log that grows, read step by step by one thread. A replay starts from `reader`; `step` goes on at its end.

All have `reader`, the log as it was at the beginning: its committed batches, and the snapshots beside them; `seen_to`,
the offset after the last whole batch that was seen, committed or not; `trouble`, the reason why no records arrive, a
sentence, while that may pass, else None; `close`, which releases what is held open.

`step` returns the next committed batches, a bounded number, without waiting, an empty sequence where there are none
yet. They follow those of the step before without a gap, the first ones those of `reader`. It raises a KraftlakeError,
one sentence, where the log can't be followed any further.
"""


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
