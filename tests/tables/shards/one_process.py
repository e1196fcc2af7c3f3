"""The tables of a log by shards and driver, without Spark, and by the writers of one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import to_rows
from kraftlake.replay.log.delta_chunk import LogBegin, ReplayState
from kraftlake.replay.log.effective_records import ShardRecords
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.history_table import OpenRows
from kraftlake.tables.jobs import ALL
from kraftlake.tables.metrics.count_changes import CountChanges
from kraftlake.tables.shards.chunks import Part, batch_of, chunks_of
from kraftlake.tables.shards.faults import earliest, fault_to_json
from kraftlake.tables.shards.routing import Router
from kraftlake.tables.shards.steps import OthersStep, ShardStep

NOWHERE = Path("/nowhere")
Rows = dict[str, Counter[str]]


def writers_of_all() -> list[ChangesWriter]:
    """The writers of all tables that are made of deltas."""
    writers = ALL.new_writers()
    assert all(isinstance(writer, ChangesWriter) for writer in writers)
    return writers  # type: ignore[return-value]


def counted(table: pa.Table) -> Counter[str]:
    """The rows of a table, each as often as it is there."""
    return Counter(map(repr, table.to_pylist()))


def drained(writers: Sequence[ChangesWriter], *, ended: bool = True) -> Rows:
    """The rows that writers have, and the open rows of histories by `<table> open` if the log has ended."""
    rows: Rows = {}
    for writer in writers:
        name, schema = writer.description.name, writer.description.schema
        rows[name] = counted(writer.drain().cast(schema))
        if ended and hasattr(writer, "open_tables"):
            states: OpenRows = writer  # type: ignore[assignment]
            tables = [table.cast(schema) for table in states.open_tables()]
            rows[f"{name} open"] = counted(pa.concat_tables([schema.empty_table(), *tables]))
    return rows


def in_process(log: Sequence[RecordBatch]) -> Rows:
    """The rows of all tables of a log, by the writers of one process."""
    writers, replay = writers_of_all(), LogReplay()
    for writer in writers:
        writer.open(replay, LogBegin(), writer.table(NOWHERE))
    for chunk in replay.take(to_rows(log)) if log else ():
        for writer in writers:
            writer.take_deltas(chunk)
    return drained(writers)


def routed(batches: Sequence[RecordBatch], shards: int) -> dict[int, list[ShardRecords]]:
    """The records of each shard, and of the driver: over the wire as Spark sends them, each batch read alone."""
    found: dict[int, list[ShardRecords]] = {shard: [] for shard in range(shards + 1)}
    for batch in batches:
        router = Router(shards, Part.LOG)
        sent = [*router.take(to_rows([batch])), *router.flush()]
        for chunk in chunks_of([batch_of(sent)]):
            found[chunk.shard].append(chunk.content)
    return found


def by_shards(
    pieces: Sequence[Sequence[RecordBatch]],
    shards: int,
    *,
    stored: Callable[[ReplayState], ReplayState] = lambda state: state,
    check: Callable[[ReplayState], None] = lambda _: None,
) -> Rows:
    """The rows of all tables of a log, a step for each piece.

    `stored` is what becomes of a shard's state between two steps; `check` gets that of the driver.
    """
    rows: Rows = {}

    def add(made: Rows) -> None:
        for name, some in made.items():
            rows[name] = rows.get(name, Counter()) + some

    states, at = [ReplayState() for _ in range(shards)], MetadataProvenance.EMPTY
    writers = writers_of_all()
    driver = OthersStep(ReplayState(), writers, [writer.table(NOWHERE) for writer in writers])
    for number, piece in enumerate(pieces):
        records, last, counts, faults = routed(piece, shards), number + 1 == len(pieces), list[CountChanges](), []
        for shard in range(shards):
            of_topics = [writer for writer in writers_of_all() if writer.of_topics]
            step = ShardStep(states[shard].ending(at), of_topics)
            try:
                for each in records[shard]:
                    step.take([each])
            except KraftlakeError as fault:
                faults.append(fault_to_json(fault))
                continue
            counts.append(step.counts())
            states[shard] = stored(step.state)
            add(drained(of_topics, ended=last))
        with earliest(faults):
            driver.take(records[shards], counts)
        if piece:
            at = MetadataProvenance(offset=piece[-1].last_offset, epoch=piece[-1].epoch, timestamp=piece[-1].timestamp)
            check(driver.state(at))
    add(drained(writers))
    return rows
