"""The replay of what a shard, or the driver, gets of a snapshot and a log. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.shards.chunks import Chunk, Part

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart

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
            replay.load([chunk.records()], base_at)
        elif chunk.part == Part.LOG:
            for _ in replay.take_parts([chunk.records()]):
                pass  # nobody asks for the deltas before a state
        else:
            rest = chain((chunk,), rest)
            break
    if not of_shard:
        refuse_partitions(replay)
    return replay, rest


def refuse_partitions(replay: LogReplay) -> None:
    """Raise CorruptDataError if the driver has got a record of a partition."""
    if replay.store.count:
        raise CorruptDataError(_NO_SHARD)


def parts_of_step(chunks: Iterable[Chunk]) -> Iterator[LogPart]:
    """The records of the chunks of STEP, as parts of a log."""
    return (chunk.records() for chunk in chunks if chunk.part == Part.STEP and len(chunk.batches))
