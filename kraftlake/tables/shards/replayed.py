"""The replay of what a shard, or the rest, gets of a snapshot and a log. Imports numpy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.effective_records import ShardRecords
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.shards.chunks import Chunk, Part

_NO_SHARD: Final = "a record of a topic has a frame that Kafka does not write, so no shard has taken it."


def replayed(
    chunks: Iterable[Chunk], base_at: MetadataProvenance, *, of_shard: bool
) -> tuple[LogReplay, Iterator[Chunk]]:
    """Replay the chunks of BASE and LOG, in order, onto the empty image; gives the replay, and the chunks after them.

    `base_at` is where the snapshot ends. Raises ReplayError, UnknownRecordError or CorruptDataError, with the offset,
    for a record that contradicts what is there, or can't be replayed.
    """
    replay, rest = LogReplay(of_shard=of_shard), iter(chunks)
    replay.go_on(ReplayState())
    for chunk in rest:
        if chunk.part == Part.BASE:
            replay.load([chunk.content], base_at)
        elif chunk.part == Part.LOG:
            deque(replay.take_parts([chunk.content]), 0)  # nobody asks for the deltas before a state
        else:
            rest = chain((chunk,), rest)
            break
    if not of_shard:
        refuse_partitions(replay)
    return replay, rest


def refuse_partitions(replay: LogReplay) -> None:
    """Raise CorruptDataError if the rest has got a record of a partition."""
    if replay.store.count:
        raise CorruptDataError(_NO_SHARD)


def parts_of_step(chunks: Iterable[Chunk]) -> Iterator[ShardRecords]:
    """The records of the chunks of STEP, as parts of a log."""
    parts = (chunk.content for chunk in chunks if chunk.part == Part.STEP)
    return (part for part in parts if part is not None)
