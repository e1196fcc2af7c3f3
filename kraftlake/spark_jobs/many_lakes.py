"""One job over many lakes: each lake is a task, in which an executor's Python makes its tables without Spark.

Each lake has a Spark job of its own with that one task, so that an error that ends an executor ends no other lake's
job.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kraftlake.metadata_log.lakes import lakes_at
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.runtime.arguments import several, whole_or_none
from kraftlake.runtime.errors import KraftlakeError, LakeError, UsageError, sentence_of
from kraftlake.runtime.log import get_logger
from kraftlake.spark_jobs.run_session import RunSession
from kraftlake.spark_jobs.tasks import in_tasks, is_remote, lake_here
from kraftlake.tables.catch_up.updating import update_by_job
from kraftlake.tables.cluster_id import cluster_id_of
from kraftlake.tables.jobs import job_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_CORES: Final = "local[*]"
_AT_ONCE: Final = 256
"""The most lakes that wait for an executor at a time: each has a thread of the driver, which waits as well."""
_POLL_SECONDS = 0.2

_logger = get_logger(__name__)


@attrs.frozen(kw_only=True)
class LakeRun:
    """The result of a job for one lake, a path or URI.

    `summary` is the JSON form of its `RunResult`, with `clusterId` before its keys and `unwritable` after them; None if
    the job failed there, and `error` is the reason, a sentence.
    """

    lake: str
    summary: dict[str, Any] | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"lake": self.lake, **({"error": self.error} if self.summary is None else self.summary)}


@attrs.frozen(kw_only=True)
class LakesResult:
    """The results of a job for many lakes, in the order in which they were named."""

    lakes: tuple[LakeRun, ...]

    @property
    def failed(self) -> int:
        """The number of lakes where the job failed."""
        return sum(run.error is not None for run in self.lakes)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"lakes": [run.to_json() for run in self.lakes], "failed": self.failed}


def run_lakes(
    name: str,
    lakes: Iterable[str | Path | Location],
    *,
    master: str | None = None,
    snapshot_every_bytes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LakesResult:
    """Run one of JOBS over many lakes, each in one task on an executor, and return the result of each.

    Each of `lakes` is a lake, a folder of lakes, or a pattern (`lakes_at`); a lake that is named twice is one. A
    failure is a part of the result and stops no other lake. All executors need to reach the lakes by the same names.

    `snapshot_every_bytes` is for jobs that write snapshots, Kafka's default unless it is given. `spark` None takes the
    active session, or starts one with the `master` (this machine's cores by default) and stops it at the end.
    `on_progress` is called with the number of lakes that are done and of all, also at the beginning.

    Raises UsageError for a name that no job has and for an empty list, LakeError if none of the places is a lake,
    EnvironmentFaultError when Spark does not start.
    """
    job = job_named(name)
    whole_or_none(snapshot_every_bytes, "a number of bytes between snapshots", least=1)
    runs = _named(lakes)
    found = [lake for lake, run in runs.items() if run is None]
    done = len(runs) - len(found)
    if on_progress is not None:
        on_progress(done, len(runs))
    with RunSession(spark, f"kraftlake {job.name}", master or ALL_CORES) as session:
        make = partial(_made_in_a_task, job.name, snapshot_every_bytes)
        with closing(_each_in_a_task(session.get(), f"kraftlake {job.name}", make, found)) as ended:
            for run in ended:
                runs[run.lake] = run
                done += 1
                _logger.info("lake_done", job=job.name, lake=run.lake, error=run.error)
                if on_progress is not None:
                    on_progress(done, len(runs))
    return LakesResult(lakes=tuple(run for run in runs.values() if run is not None))


def _named(places: Iterable[str | Path | Location]) -> dict[str, LakeRun | None]:
    """The lakes that the places name; a place that is not a lake has its result already."""
    runs: dict[str, LakeRun | None] = {}
    fault: LakeError | None = None
    for place in several(places, "a list of lakes"):
        try:
            runs |= dict.fromkeys(map(str, lakes_at(place)))
        except LakeError as error:
            fault = fault or error
            name = str(lake_location(place))
            runs[name] = LakeRun(lake=name, error=str(error))
    if not runs:
        raise UsageError("name at least one lake")
    if fault is not None and all(runs.values()):
        raise fault
    return runs


def _each_in_a_task(
    spark: SparkSession, title: str, make: Callable[[str], LakeRun], lakes: Sequence[str]
) -> Generator[LakeRun]:
    """The results, in the order in which the tasks end. No task runs on when the iteration ends early."""
    tag = f"{title} {uuid.uuid4()}".replace(" ", "-")
    interrupt: Callable[[], object] = partial(spark.interruptTag, tag)
    if not is_remote(spark):  # where a thread interrupts its own tags alone, but a session all that it runs
        spark = spark.newSession()
        interrupt = spark.interruptAll

    def run(lake: str) -> LakeRun:
        spark.addTag(tag)  # of this thread
        try:
            (made,) = in_tasks(spark, make, [lake])
        except KraftlakeError as fault:
            return LakeRun(lake=lake, error=str(fault))
        return made

    with ThreadPoolExecutor(min(len(lakes), _AT_ONCE) or 1, "lake") as pool:
        futures = [pool.submit(run, lake) for lake in lakes]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
            while wait(futures, timeout=0).not_done:
                interrupt()  # again, for a thread may be about to begin its job
                wait(futures, timeout=_POLL_SECONDS)


def _made_in_a_task(name: str, snapshot_every_bytes: int | None, lake: str) -> LakeRun:
    """The result of a lake, made on an executor: Spark would make a traceback of an exception."""
    try:
        location = lake_here(lake)
        result = update_by_job(name, location, snapshot_every_bytes=snapshot_every_bytes)
        cluster = {"clusterId": cluster_id_of(location)}
        return LakeRun(lake=lake, summary={**cluster, **result.to_json(), "unwritable": result.unwritable})
    except Exception as fault:
        return LakeRun(lake=lake, error=sentence_of(fault))
