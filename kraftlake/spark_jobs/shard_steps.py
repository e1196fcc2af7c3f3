"""Steps of a log in which Spark's executors make the tables' rows of topics, by shards of topics, and write them.

A step: readers deal a range of offsets out, a shuffle brings each shard its records, a task a shard makes rows and
writes files (`ShardTask`), and the driver makes the rows of all else and commits the files of each table with its own,
in one commit with the offset. Files of tasks that were lost or repeated are part of no commit, and vacuum removes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from kraftlake.metadata_log import LakeSnapshot, MetadataLog
from kraftlake.metadata_log.reading.pieces import log_pieces
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.fold.frames import bounded_batches, in_arrow, numbered_frame, telling_faults
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, batch_of, chunk_of_fault, chunks_of
from kraftlake.tables.shards.count_changes import CountChanges
from kraftlake.tables.shards.faults import fault_to_json, raise_first
from kraftlake.tables.shards.fold_plan import FoldPlan, base_is_sound, read_chunks
from kraftlake.tables.shards.folded import (
    FOLDED_SCHEMA,
    one_row,
    read_stream,
    row_of_fault,
    row_of_shard,
    shards_in,
    stream_of,
)
from kraftlake.tables.shards.routing import Router
from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
from kraftlake.tables.shards.state_files import StateFile, read_shard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS_OF_A_PIECE: Final = 500_000
_DONE_SCHEMA: Final = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("done", pa.string()),
        pa.field("counts", pa.binary()),
        pa.field("driver", pa.binary()),
        pa.field("fault", pa.string()),
    ]
)
"""A shard with its ShardDone as JSON and its CountChanges, or an error as JSON; or the chunks for the driver, as a
stream."""


@attrs.frozen(kw_only=True)
class StepPlan:
    """A step up to offset `task.last`: ranges of offsets that are read side by side, for so many shards.

    `fold` is how the shards' states are made if they are in no files. It can be sent to other processes.
    """

    task: ShardTask
    shards: int
    pieces: tuple[tuple[int, int], ...]
    fold: FoldPlan | None = None

    @classmethod
    def of(cls, log: MetadataLog, task: ShardTask, shards: int, fold: FoldPlan | None) -> StepPlan:
        """The plan of a task after the states' offset."""
        first, pieces = task.at.offset + 1, list[tuple[int, int]]()
        if first <= task.last:
            pieces = log_pieces(log, first, task.last, _ROWS_OF_A_PIECE)
        return cls(task=task, shards=shards, pieces=tuple(pieces), fold=fold)

    def read(self, number: int) -> Iterator[list[Chunk]]:
        """Read and route one of the pieces: of the fold, then of the step, and at last nothing for each shard."""
        folded = len(self.fold.pieces) if self.fold is not None else 0
        if self.fold is not None and number < folded:
            yield from read_chunks(self.fold, number)
        elif number < folded + len(self.pieces):
            yield from self._read_step(*self.pieces[number - folded])
        else:  # so that each has a task
            yield [Chunk(shard=shard, part=Part.STEP, first=-1, payload=b"") for shard in range(self.shards)]

    @property
    def piece_count(self) -> int:
        """The number of pieces for `read`."""
        return (0 if self.fold is None else len(self.fold.pieces)) + len(self.pieces) + 1

    def _read_step(self, first: int, last: int) -> Iterator[list[Chunk]]:
        """The batches that begin in a range of offsets."""
        router = Router(self.shards, Part.STEP)
        log = MetadataLog.open(lake_location(self.task.lake))
        for rows in log.batch_rows(first, last, columns=BATCH_COLUMNS):
            begun = rows.filter(pc.greater_equal(rows.column("batch"), first))
            if chunks := list(router.take(begun)):
                yield chunks
        if chunks := list(router.flush()):
            yield chunks


@attrs.frozen(kw_only=True, eq=False)
class StepDone:
    """The results of all shards in their order, merged count changes, and the chunks for the driver."""

    shards: list[ShardDone]
    counts: CountChanges
    driver: list[Chunk]

    @property
    def decoded(self) -> int:
        """The number of the step's records that shards and driver decode; those for several of them count for each."""
        of_driver = sum(len(chunk.records()) for chunk in self.driver if chunk.part == Part.STEP)
        return of_driver + sum(shard.records for shard in self.shards)

    @property
    def size(self) -> int:
        """The bytes of the step's records, but for no-op records."""
        of_driver = sum(len(chunk.payload) for chunk in self.driver if chunk.part == Part.STEP)
        return of_driver + sum(shard.size for shard in self.shards)

    def is_of(self, base: LakeSnapshot | None) -> bool:
        """Whether the states were made of a sound base."""
        return base is None or base_is_sound(base, [chunk for chunk in self.driver if chunk.part == Part.CHECK])


def run_step(spark: SparkSession, plan: StepPlan) -> StepDone:
    """Run a step on the executors; nothing is committed.

    Raises what a replay raises, with the lowest offset of all shards, LakeError if the lake can't be read or written,
    and EnvironmentFaultError if Spark fails.
    """
    with bounded_batches(spark), telling_faults():
        rows = _frame(spark, plan).toArrow()
    chunks = [chunk for cell in rows["driver"] if cell.is_valid for chunk in _chunks_in(cell.as_buffer())]
    raise_first(bytes(chunk.payload).decode() for chunk in chunks if chunk.part == Part.FAULT)
    raise_first(fault for fault in rows["fault"].to_pylist() if fault is not None)
    done = sorted(
        (row["shard"], ShardDone.from_json(row["done"]), row["counts"])
        for row in rows.select(["shard", "done", "counts"]).to_pylist()
        if row["done"] is not None
    )
    assert [shard for shard, *_ in done] == [*range(plan.shards)], "each shard had a task"
    return StepDone(
        shards=[each for _, each, _ in done],
        counts=CountChanges.joined([CountChanges.of_bytes(counts) for *_, counts in done]),
        driver=sorted(chunks, key=lambda chunk: (chunk.part, chunk.first)),
    )


def states_frame(spark: SparkSession, lake: Location, states: Sequence[StateFile]) -> DataFrame:
    """The topics in the files of the shards' states, as rows of FOLDED_SCHEMA."""
    place = str(lake)

    def read(shard: int) -> Iterator[pa.RecordBatch]:
        try:
            yield row_of_shard(shard, read_shard(lake_location(place), states[shard]).topics)
        except KraftlakeError as fault:
            yield row_of_fault(shard, fault)

    return numbered_frame(spark, len(states), len(states), read, FOLDED_SCHEMA)


def _frame(spark: SparkSession, plan: StepPlan) -> DataFrame:
    """A row of _DONE_SCHEMA for each shard, and one for the driver."""

    def read(number: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from map(batch_of, plan.read(number))
        except KraftlakeError as fault:
            yield batch_of([chunk_of_fault(plan.shards, fault)])

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard, chunks in shards_in(batches):
            if shard == plan.shards:
                content = stream_of(pa.Table.from_batches([batch_of(list(chunks))]))
                yield one_row(_DONE_SCHEMA, shard=shard, driver=content)
                continue
            try:
                done, counts = plan.task.run(shard, chunks)
            except KraftlakeError as fault:
                yield one_row(_DONE_SCHEMA, shard=shard, fault=fault_to_json(fault))
                continue
            yield one_row(_DONE_SCHEMA, shard=shard, done=done.to_json(), counts=counts.to_bytes())

    count = plan.piece_count
    chunks = numbered_frame(spark, count, count, read, CHUNK_SCHEMA)
    routed = by_number(chunks, plan.shards + 1, "shard").sortWithinPartitions("shard", "part", "first")
    return in_arrow(routed, work, _DONE_SCHEMA)


def _chunks_in(cell: pa.Buffer) -> Iterator[Chunk]:
    return chain.from_iterable(chunks_of(batch) for batch in read_stream(cell).to_batches())
