"""The tasks of a step, run one after the other without Spark, write the tables that one process makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.tables.catch_up.updating import update_tables, writers_of
from kraftlake.tables.jobs import ALL
from kraftlake.tables.shards.chunks import Chunk, Part, chunks_of
from kraftlake.tables.shards.results import Results, result_of
from kraftlake.tables.shards.shard_plan import ShardPlan, plan_fold, provenance_at, read_chunks
from kraftlake.tables.shards.shard_task import ShardDone, ShardTask
from tests.replay.made_logs import data, partition, topic
from tests.tables.sample_log import batches_between

SHARDS = 2


def rows_of(lake: Path) -> dict[str, Counter[str]]:
    """The rows of all tables, each as often as it is there."""
    files = {name: read_table(lake / name).files.values() for name in ALL.tables}
    return {
        name: Counter(repr(row) for file in some for row in pq.read_table(lake / name / file.path).to_pylist())
        for name, some in files.items()
    }


def made_in_process(lake: Path, batches: Sequence[RecordBatch]) -> dict[str, Counter[str]]:
    MetadataLog.create(lake).append(batches)
    update_tables(lake, ALL.tables)
    return rows_of(lake)


def results_of(plan: ShardPlan, task: ShardTask) -> Results:
    """What the tasks of a step make."""
    read = [read_chunks(plan, number) for number in range(plan.piece_count)]
    chunks = sorted(
        (chunk for lists in read for some in lists for chunk in some), key=attrgetter("shard", "part", "first")
    )
    results: list[Chunk] = []
    for shard, some in groupby(chunks, key=attrgetter("shard")):
        if shard == plan.shards:
            results += some
        else:
            results += chunks_of([result_of(shard, partial(task.run, shard, some, plan.base_at))])
    return Results.of(pa.Table.from_batches([*task.ending(plan.shards, results, plan.base_at)]))


def take_step(lake: Path, at: MetadataProvenance, last: int, before: Sequence[ShardDone]) -> Sequence[ShardDone]:
    """Make a step from the states before it, without any of the snapshot and the log, and commit it."""
    log = MetadataLog.open(lake)
    states = [each.state for each in before if each.state is not None]
    task = ShardTask(
        lake=str(lake),
        tables=ALL.tables,
        holder="events",
        at=at,
        to=provenance_at(log, last),
        states=tuple(states) if len(states) == len(before) else (),
        goes_on=at.offset >= 0,
    )
    tables = [writer.table(lake) for writer in writers_of(ALL.tables)]
    for table in tables:
        table.go_on_from(task.covered)
        table.create(log.table_id)
    plan = ShardPlan(lake=str(lake), shards=SHARDS)
    if not task.states and at.offset >= 0:
        plan = plan_fold(log, at.offset, parallelism=SHARDS, shards=SHARDS)
    plan = attrs.evolve(plan.with_log(log, Part.STEP, at.offset + 1, last, 1_000), all_shards=True)
    done = results_of(plan, task)
    assert done.faults == []
    for table in tables:
        table.append_files([file for each in done.facts for file in each.files.get(table.name, ())], last)
    return done.facts


def made_in_steps(lake: Path, pieces: Sequence[Sequence[RecordBatch]]) -> list[Sequence[ShardDone]]:
    log, at, steps = MetadataLog.create(lake), MetadataProvenance.EMPTY, list[Sequence[ShardDone]]()
    for batches in pieces:
        log.append(batches)
        steps.append(take_step(lake, at, log.end_offset - 1, steps[-1] if steps else ()))
        at = provenance_at(log, log.end_offset - 1)
    return steps


def test_two_steps_write_the_tables_that_one_process_makes(tmp_path: Path) -> None:
    batches = batches_between(0, 3_000)
    steps = made_in_steps(tmp_path / "steps", [batches[:150], batches[150:]])
    assert all(each.state is not None for done in steps for each in done)
    assert rows_of(tmp_path / "steps") == made_in_process(tmp_path / "process", batches)


def test_a_history_in_which_nothing_changes_keeps_its_file_of_open_rows(tmp_path: Path) -> None:
    """A topic is created, and no broker changes."""
    first = batches_between(0, 2_000)
    more = [data(first[-1].last_offset + 1, topic(900), partition(900), epoch=first[-1].epoch)]
    _, done = made_in_steps(tmp_path / "steps", [first, more])
    assert done[-1].files["broker_history"] == []
    assert len(done[-1].files["topic_history"]) == 1
    assert rows_of(tmp_path / "steps") == made_in_process(tmp_path / "process", [*first, *more])


def test_a_state_that_records_can_not_express_is_made_anew_for_the_next_step(tmp_path: Path) -> None:
    """The log has no metadata.version."""
    config = partial(r.ConfigRecord, resource_type=2, name="retention.ms")
    first = [data(0, topic(1), partition(1), config(resource_name="topic-1", value="1"))]
    then = [data(3, topic(2), partition(2), partition(1, replicas=(2, 3)), config(resource_name="topic-1", value="2"))]
    end = [data(7, config(resource_name="topic-2", value="3"), partition(2, replicas=(3, 1)))]
    steps = made_in_steps(tmp_path / "steps", [first, then, end])
    assert [done[-1].state for done in steps] == [None] * 3
    assert all("metadata.version" in str(done[-1].unwritable) for done in steps)
    assert rows_of(tmp_path / "steps") == made_in_process(tmp_path / "process", [*first, *then, *end])
