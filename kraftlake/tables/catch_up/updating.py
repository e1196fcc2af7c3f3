"""Updates a lake's derived tables to the log's end in this process, once or as the log grows. Needs no Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import attrs

from kraftlake.metadata_log.delta_table.table_state import LOG_FOLDER
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.arguments import whole, whole_or_none
from kraftlake.runtime.errors import UsageError
from kraftlake.tables.catch_up.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES
from kraftlake.tables.catch_up.table_run import Progress, RunResult, TableRun, table_run
from kraftlake.tables.derived_tables import checked_tables
from kraftlake.tables.jobs import ALL, RECORDS, job_named
from kraftlake.tables.table_writer import TableWriter

DEFAULT_POLL_SECONDS = 1.0


def update_tables(
    lake: str | Location,
    tables: Sequence[str] | None = None,
    *,
    snapshot_every_bytes: int = DEFAULT_SNAPSHOT_BYTES,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
    poll: float | None = DEFAULT_POLL_SECONDS,
    on_update: Callable[[RunResult], None] | None = None,
) -> RunResult:
    """Update derived tables of a lake to the end of its log, each from its own last offset.

    `tables` None means all tables except `records/`, `records/` too if the lake has it, and the lake's snapshots: one
    after `snapshot_every_bytes` bytes of records, and one of the newest image. With named tables only these are
    written, and no snapshots. `on_progress` is called after each publication with the last published offset and the
    log's end.

    With `stop` the tables are kept up to date until it is set: the run polls the log every `poll` seconds and commits
    the new rows. `on_update` is then called after each update with the result of the whole run so far. `poll` None
    brings them up to date once, and ends early, between two chunks of the log, once `stop` is set.

    Raises UsageError for a name that no table has; LakeError if there is no lake, another run writes one of the tables,
    or a table is of another log or release; OffsetError if the log was trimmed past a table; and the errors of
    replaying a record, with its offset.
    """
    location = fixed_location(lake)
    whole(snapshot_every_bytes, "a number of bytes between snapshots", least=1)
    MetadataLog.open(location)
    names = _wanted(location, tables)
    snapshots = snapshot_every_bytes if tables is None else None
    with ExitStack() as stack:
        start = partial(table_run, "tables", location, on_progress=on_progress)
        of_images = [name for name in names if name not in RECORDS.tables]
        runs: list[TableRun] = []
        if of_images:
            writers = writers_of(of_images)
            runs.append(stack.enter_context(start(writers, snapshot_every_bytes=snapshots)))
        if len(of_images) < len(names):  # the rows of a log that starts above 0 begin before its first image
            runs.append(stack.enter_context(start(RECORDS.new_writers())))
        for run in runs:
            run.begin()
            run.catch_up(run.end_offset - 1, to_the_end=stop is None or poll is None, stop=stop)
        if stop is not None and poll is not None:
            _follow(runs, stop, poll, on_update)
        for run in runs:
            run.finish()
        return _joined(runs)


def update_by_job(
    name: str,
    lake: str | Location,
    *,
    snapshot_every_bytes: int | None = None,
    on_progress: Progress | None = None,
) -> RunResult:
    """Run one of JOBS in this process: update its tables to the end of a lake's log, and write its snapshots.

    `snapshot_every_bytes` None is Kafka's default. Raises UsageError for a name that no job has, and the errors of
    `update_tables`.
    """
    job = job_named(name)
    whole_or_none(snapshot_every_bytes, "a number of bytes between snapshots", least=1)
    snapshots = (snapshot_every_bytes or DEFAULT_SNAPSHOT_BYTES) if job.snapshots else None
    start = partial(table_run, job.name, fixed_location(lake), job.new_writers(), snapshot_every_bytes=snapshots)
    with start(on_progress=on_progress) as run:
        run.begin()
        run.catch_up(run.end_offset - 1, to_the_end=True)
        run.finish()
        return run.result()


def writers_of(names: Sequence[str]) -> list[TableWriter]:
    """Writers of some tables of the job `all`, for one run."""
    wanted = set(names)
    return [writer for writer in ALL.new_writers() if writer.description.name in wanted]


def _wanted(lake: Location, tables: Sequence[str] | None) -> list[str]:
    if tables is None:
        has_records = (lake / RECORDS.tables[0] / LOG_FOLDER).is_dir()
        return [*ALL.tables, *(RECORDS.tables if has_records else ())]
    named = checked_tables(tables)
    if not named:
        raise UsageError("name at least one table")
    return named


def _follow(
    runs: Sequence[TableRun], stop: threading.Event, poll: float, on_update: Callable[[RunResult], None] | None
) -> None:
    if on_update is not None:
        on_update(_joined(runs))
    while not stop.wait(poll):
        outdated = [run for run in runs if run.refresh()]
        for run in outdated:
            run.catch_up(run.end_offset - 1, stop=stop)
        if not outdated:
            for run in runs:
                run.flush()
        elif on_update is not None:
            on_update(_joined(runs))


def _joined(runs: Sequence[TableRun]) -> RunResult:
    """One result of several runs; image, batches and deltas are those of the first."""
    results = [run.result() for run in runs]
    return attrs.evolve(
        results[0],
        offset=min(result.offset for result in results),
        base_offset=min(result.base_offset for result in results),
        first_offset=min(result.first_offset for result in results),
        rows={name: count for result in results for name, count in result.rows.items()},
    )
