"""Whatever befalls a job, its tables end up as those of one undisturbed run: each row once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table.commit import commit_beside_writers
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.spark_jobs import StreamOptions, run_job
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import JOBS
from kraftlake.tables.table_locks import JOBS_FOLDER
from tests.at_least_one import at_least_one
from tests.tables.catch_up.test_log_fold import BATCHES
from tests.tables.sample_log import append_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLES = sorted({table for job in JOBS.values() for table in job.tables})


class Rows(dict[str, list[str]]):
    """The rows of each table, which a failure doesn't print."""

    def __repr__(self) -> str:
        return f"<rows of {len(self)} tables>"


EXAMPLES, FEWEST_STEPS, MOST_STEPS = (12, 2, 6) if os.environ.get("KRAFTLAKE_TESTS") == "long" else (1, 1, 1)
"""An example is many runs, which take seconds."""


class Crash(Exception):  # noqa: N818 - what happens, not what is reported
    """The driver is gone, in the middle of something."""


class Lake:
    """A lake with a job's run, and what befalls it."""

    def __init__(self, path: Path, spark: SparkSession, *, in_one_task: bool = True) -> None:
        self.path = path
        self._spark = spark
        self._log = MetadataLog.create(path)
        self._appended = 0
        self._in_one_task = in_one_task

    def append(self, count: int, commits: int) -> None:
        batches = BATCHES[self._appended : self._appended + count]
        if not batches:
            return
        self._log.refresh()
        append_in(self._log, min(commits, len(batches)), batches)
        self._appended += len(batches)

    def append_rest(self) -> None:
        self.append(len(BATCHES), 2)

    def run(self, job: str, steps: int, crash: tuple[str, int] | None, patch: pytest.MonkeyPatch) -> None:
        if not self._log.end_offset:
            return
        options = StreamOptions(max_records=400 * steps)
        with patch.context() as patched:
            if not self._in_one_task:
                patched.setattr("kraftlake.spark_jobs.shard_run.SHORT_LOG", 0)
            if crash is not None:
                patched.setattr("kraftlake.tables.lake_table.commit_beside_writers", doomed(*crash))
            try:
                run_job(job, self.path, spark=self._spark, options=options, snapshot_every_bytes=20_000)
            except BaseException as fault:
                if crash is None or not caused_by_a_crash(fault):
                    raise
                event(f"crashed {crash[0]} a commit")

    def lose_states(self) -> None:
        shutil.rmtree(self.path / JOBS_FOLDER, ignore_errors=True)

    def compact(self) -> None:
        if self._log.end_offset:
            DeltaTable(self.path / "log").optimize.compact()

    def rows(self) -> Rows:
        return Rows(
            (name, sorted(map(str, DeltaTable(self.path / name).to_pyarrow_table().to_pylist()))) for name in TABLES
        )


def doomed(when: str, number: int) -> Callable[..., Any]:
    """A writer of commits that dies at its so-many-th one: before it is made, or when it is and nobody knows yet."""
    left = number

    def commit(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            raise Crash
        done = commit_beside_writers(*arguments)
        if left == 0:
            raise Crash
        return done

    return commit


def caused_by_a_crash(fault: BaseException | None) -> bool:
    while fault is not None and not isinstance(fault, Crash) and "Crash" not in str(fault):
        fault = fault.__cause__ or fault.__context__
    return fault is not None


@contextmanager
def lake_in(folder: Path, spark: SparkSession, *, in_one_task: bool = True) -> Iterator[Lake]:
    path = folder / "lake"
    try:
        yield Lake(path, spark, in_one_task=in_one_task)
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Rows:
    """What one process makes of the log."""
    with lake_in(tmp_path_factory.mktemp("undisturbed"), spark) as lake:
        lake.append(len(BATCHES), 1)
        update_tables(lake.path, TABLES)
        return lake.rows()


CRASHES = st.tuples(st.sampled_from(["before", "after"]), st.integers(1, 12))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, len(BATCHES) // 2), st.integers(1, 4)),
        st.tuples(st.just("run"), st.sampled_from(list(JOBS)), st.integers(1, 3), st.none() | CRASHES),
        st.tuples(st.just("run"), st.just("all"), st.integers(1, 3), CRASHES),
        st.tuples(st.sampled_from(["lose_states", "compact"])),
    ),
    min_size=FEWEST_STEPS,
    max_size=MOST_STEPS,
)


@settings(max_examples=EXAMPLES)
@given(first=CRASHES, steps=STEPS, in_one_task=st.booleans())
def test_no_row_is_lost_or_doubled_in_any_table(
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    undisturbed: Rows,
    first: tuple[str, int],
    steps: list[tuple[Any, ...]],
    *,
    in_one_task: bool,
) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        lake_in(tmp_path_factory.mktemp("crashes"), spark, in_one_task=in_one_task) as lake,
    ):
        for name, *arguments in [("append", 120, 3), ("run", "all", 1, first), *steps]:
            if name == "run":
                lake.run(*arguments, patch)
            else:
                getattr(lake, name)(*arguments)
        lake.append_rest()
        lake.run("all", 2, None, patch)
        lake.run("records", 2, None, patch)
        rows = lake.rows()
        for name in at_least_one(TABLES):
            assert rows[name] == undisturbed[name], name
