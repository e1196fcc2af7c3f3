"""A distributed fold without Spark: the same functions on the same rows, the shuffle done here, in any order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs
import pyarrow as pa
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.loader.image_columns import topics_from_arrow
from kraftlake.replay.log.delta_chunk import ReplayState
from kraftlake.replay.log.partition_changes import PartitionChanges
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.spark_jobs.fold.topic_frames import changes_after
from kraftlake.tables.shards.chunks import Chunk, batch_of
from kraftlake.tables.shards.faults import earliest
from kraftlake.tables.shards.replayed import replayed
from kraftlake.tables.shards.results import Results, result_of, shards_in, topics_and_names
from kraftlake.tables.shards.shard_plan import ShardPlan, read_chunks
from tests.histories import histories, uuid_of

TIME = 1_700_000_000_000


def shuffled(plan: ShardPlan, order: random.Random) -> list[pa.RecordBatch]:
    """The chunks of a plan, read in any order, as batches of any size, those of a shard together and sorted."""
    numbers = list(range(plan.piece_count))
    order.shuffle(numbers)
    chunks = [chunk for number in numbers for read in read_chunks(plan, number) for chunk in read]
    chunks.sort(key=lambda chunk: (chunk.shard, chunk.part, chunk.first))
    batches = []
    while chunks:
        size = order.randrange(1, 6)
        batches.append(batch_of(chunks[:size]))
        chunks = chunks[size:]
    return batches


def folded(plan: ShardPlan, order: random.Random) -> pa.Table:
    """What `results_frame` gives of topics."""

    def topics(chunks: Iterator[Chunk]) -> tuple[object, object]:
        return topics_and_names(replayed(chunks, plan.base_at, of_shard=True)[0].store.topics())

    return pa.Table.from_batches(
        batch_of(chunks) if shard == plan.shards else result_of(shard, partial(topics, chunks))
        for shard, chunks in shards_in(shuffled(plan, order))
    )


def others_of(plan: ShardPlan, rows: pa.Table) -> ReplayState:
    """What `folding` makes of it."""
    results = Results.of(rows)
    with earliest(results.faults):
        replay, _ = replayed(results.rest, plan.base_at, of_shard=False)
    return replay.state


def topics_of(rows: pa.Table) -> dict[str, object]:
    """All topics in the rows, by name."""
    topics: dict[str, object] = {}
    for made in Results.of(rows).made:
        for name, topic in topics_from_arrow(made).topics_by_name().items():
            assert name not in topics, "a topic is in one shard"
            topics[name] = topic
    return topics


def changes_of(plan: ShardPlan, order: random.Random, from_offset: int) -> Iterator[PartitionChanges]:
    """The changes of the plan's shards, in one metadata delta."""
    for shard, chunks in shards_in(shuffled(plan, order)):
        if shard < plan.shards:
            yield changes_after(from_offset, *replayed(chunks, plan.base_at, of_shard=True))


def equal(image: MetadataImage, topics: dict[str, object], others: ReplayState) -> bool:
    """Whether an image is what was folded."""
    theirs = dict(image.topics.topics_by_name().items())
    rest = attrs.evolve(image, topics=TopicsImage.EMPTY, provenance=others.image.provenance)
    return topics == theirs and rest == attrs.evolve(others.image, topics=TopicsImage.EMPTY)


def local_image(log: MetadataLog, at: int) -> MetadataImage:
    """The image by the log alone."""
    return image_at(LakeReader(log), at, from_snapshot=False).image


@st.composite
def logs(draw: st.DrawFn) -> list[RecordBatch]:
    """A random history as a log: batches of any size, metadata transactions that end, are aborted, or stay open."""
    lowest = draw(st.sampled_from((7, 23)))
    records = draw(histories(max_steps=40, topics_only=draw(st.booleans()), lowest_level=lowest))
    marked: list[ApiMessageAndVersion] = []
    at = 0
    while at < len(records):
        size = draw(st.integers(1, 12))
        part = records[at : at + size]
        match draw(st.integers(0, 5)):
            case 0:
                marked += [_mark(r.BeginTransactionRecord()), *part, _mark(r.EndTransactionRecord())]
            case 1:
                marked += [_mark(r.BeginTransactionRecord()), *NEVER, _mark(r.AbortTransactionRecord()), *part]
            case _:
                marked += part
        at += size
    if draw(st.booleans()):
        marked += [_mark(r.BeginTransactionRecord()), *NEVER]
    return _batches(draw, marked)


def _never() -> Iterator[ApiMessageAndVersion]:
    """What no image may show: records of a transaction that has no end."""
    yield _mark(r.TopicRecord(name="never", topic_id=uuid_of(77)))
    yield _mark(r.PartitionRecord(partition_id=0, topic_id=uuid_of(77), replicas=(1,), isr=(1,), leader=1,
                                  leader_epoch=0, partition_epoch=0))  # fmt: skip
    yield _mark(r.ConfigRecord(resource_type=2, resource_name="foo", name="flush.ms", value="1"))
    yield _mark(r.ClearElrRecord(topic_name="never"))
    yield _mark(r.RemoveTopicRecord(topic_id=uuid_of(77)))


def _mark(message: object) -> ApiMessageAndVersion:
    return ApiMessageAndVersion(message, 0)  # type: ignore[arg-type]


NEVER = tuple(_never())


def _is_open(records: list[ApiMessageAndVersion]) -> bool:
    """Whether records end inside of a metadata transaction."""
    marks = (r.BeginTransactionRecord, r.EndTransactionRecord, r.AbortTransactionRecord)
    return next((isinstance(m.message, marks[0]) for m in reversed(records) if isinstance(m.message, marks)), False)


def _batches(draw: st.DrawFn, records: list[ApiMessageAndVersion]) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    offset, epoch, at = 0, 1, 0
    while at < len(records):
        # A new leader aborts an open transaction, whose other records would then be no log that a controller writes.
        open_ = _is_open(records[:at])
        if not batches or (not open_ and draw(st.integers(0, 9)) == 0):
            epoch += 1
            batches.append(RecordBatch.control_of(offset, epoch, TIME + offset, [LeaderChangeMessage(leader_id=3000)]))
            offset += 1
        part = records[at : at + draw(st.integers(1, 9))]
        batches.append(RecordBatch.of(offset, epoch, TIME + offset, part))
        at, offset = at + len(part), offset + len(part)
    return batches


def lake_with(path: Path, batches: list[RecordBatch], commits: int) -> MetadataLog:
    """A lake whose log they are, appended in so many commits."""
    log = MetadataLog.create(path, durability="os")
    for number in range(commits):
        log.append(batches[len(batches) * number // commits : len(batches) * (number + 1) // commits])
    return log
