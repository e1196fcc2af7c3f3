"""The fold of the records that are of no shard: few, and folded in the process that started the job."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.delta_chunk import TopicsState
from kraftlake.replay.log.effective_records import TransactionReader, standing_alone
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.shards.chunks import Chunk, Part
from kraftlake.tables.shards.driver_step import NO_SHARD, DriverState


def fold_driver(chunks: Iterable[Chunk]) -> DriverState:
    """Fold the chunks of BASE and LOG for the driver, in any order, into a state without provenance and epoch.

    Raises what a replay raises, with its offset.
    """
    delta, quorum, transactions = MetadataDelta(MetadataImage.EMPTY), QuorumState(), TransactionReader()
    wanted = (chunk for chunk in chunks if chunk.part in (Part.BASE, Part.LOG))
    for chunk in sorted(wanted, key=lambda chunk: (chunk.part, chunk.first)):
        for part in chunk.records().parts():
            if isinstance(part, RecordBatch):
                for record in part.messages():
                    quorum = quorum.after(record.message)
                continue
            delta.of_log = chunk.part == Part.LOG
            for records in transactions.take(part) if delta.of_log else [standing_alone(part)]:
                for place in range(len(records)):
                    offset = int(records.offsets[place]) if delta.of_log else None
                    delta.replay(records.message(place), offset)
    image = delta.apply(MetadataImage.EMPTY.provenance)
    if image.topics.partition_count:
        raise CorruptDataError(NO_SHARD)
    topics = attrs.evolve(
        TopicsState.of_image(image.topics), open_since=transactions.open_since, held=transactions.held
    )
    return DriverState(image=image, quorum=quorum, open_topics=topics)
