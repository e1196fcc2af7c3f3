"""Tasks of Spark in sessions of both kinds, classic and Connect: Arrow functions over frames of numbers."""

from __future__ import annotations

import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import pyarrow as pa

from kraftlake.metadata_log.lakes import is_lake
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.runtime import __version__
from kraftlake.runtime.errors import EnvironmentFaultError, LakeError, UsageError
from kraftlake.spark_jobs.executor_environment import lend, store_access
from kraftlake.spark_jobs.source_faults import in_one_sentence
from kraftlake.spark_jobs.stream_faults import server_gone, worded
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Part
from kraftlake.tables.shards.faults import raise_first
from kraftlake.tables.shards.results import Results, result_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

InArrow: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
T = TypeVar("T")
R = TypeVar("R")
_TRIES: Final = 6
_TRY_AGAIN_MS: Final = 2_000


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect, whose process may not see the lake."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def live(spark: SparkSession) -> SparkSession:
    """The session; raises UsageError if it was stopped."""
    if spark.is_stopped if is_remote(spark) else spark.sparkContext._jsc is None:
        raise UsageError("this session of Spark was stopped: give another one")
    return spark


def remote_session() -> SparkSession | None:
    """The active session of Spark Connect."""
    sessions = sys.modules.get("pyspark.sql.connect.session")
    active = None if sessions is None else sessions.SparkSession.getActiveSession()
    return None if active is None or active.is_stopped else active


def lend_access(spark: SparkSession) -> None:
    """Send this process's access to object stores with the tasks; on Connect the server's own is used."""
    if not is_remote(spark):
        lend(store_access(), spark.sparkContext.environment)


def parallelism(spark: SparkSession) -> int:
    """The number of tasks that a session runs at a time, as in Spark's plan of a range."""
    with worded_faults(spark):
        (plan,) = spark.sql("EXPLAIN SELECT * FROM range(1)").collect()
    splits = re.search(r"splits=(\d+)", plan[0])
    return int(splits[1]) if splits else int(spark.conf.get("spark.sql.shuffle.partitions", "1"))


def called(spark: SparkSession | None, function: Callable[[], T]) -> T:
    """The result of a function that reads a lake, in the driver; on Connect in a task, which sees the lake.

    Raises its error.
    """
    if spark is None or not is_remote(live(spark)):
        return function()
    return in_tasks(spark, lambda _: function(), [None])[0]


def in_tasks(spark: SparkSession, work: Callable[[T], R], given: Sequence[T]) -> list[R]:
    """The results of a function for each of what is given, each in a task of its own.

    Raises its error, that with the lowest offset, and EnvironmentFaultError if Spark fails.
    """

    def results(number: int) -> Iterator[pa.RecordBatch]:
        yield result_of(number, lambda: (None, work(given[number])))

    done = collected(numbered_frame(spark, len(given), len(given), results, CHUNK_SCHEMA))
    raise_first(done.faults)
    return done.facts


def numbered_frame(
    spark: SparkSession, count: int, tasks: int, make: Callable[[int], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """The rows that `make` returns for each of `count` numbers, on the executors."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from make(number)

    return in_arrow(spark.range(0, count, 1, max(1, tasks)), made, schema)


def in_arrow(frame: DataFrame, function: InArrow, schema: pa.Schema) -> DataFrame:
    """`mapInArrow` with an Arrow schema, by executors with this release of kraftlake."""
    from pyspark.sql.pandas.types import from_arrow_schema

    release = __version__

    def checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with in_one_sentence():
            check_release(release)
            yield from function(batches)

    lend_access(frame.sparkSession)
    return frame.mapInArrow(checked, from_arrow_schema(schema))


def check_release(release: str) -> None:
    """Raise EnvironmentFaultError if kraftlake is of another release here than where a task comes from."""
    if release != __version__:
        raise EnvironmentFaultError(
            f"kraftlake is {__version__} on {socket.gethostname()} and {release} where the job was started: install "
            "the same release on both"
        )


def lake_here(lake: str) -> Location:
    """The location of a lake; raises LakeError if this machine does not see it."""
    location = lake_location(lake)
    if not is_lake(location):
        raise LakeError(f"{lake} is not there on {socket.gethostname()}: all executors need to see the lakes")
    return location


def this_executor() -> str:
    """A name of the executor that this worker's Python belongs to: its JVM, or the daemon that forks its workers."""
    return f"{socket.gethostname()} {os.getppid()}"


def collected(results: DataFrame, *, made: bool = False) -> Results:
    """The results of shards, with what was `made` or without. Raises the error of a reader."""
    wanted = results if made else results.where(f"part != {Part.MADE:d}")
    with worded_faults(results.sparkSession):
        return Results.of(wanted.toArrow())


def bounded_batches(spark: SparkSession) -> AbstractContextManager[None]:
    """Keep the batches between the JVM and Python below 64 MiB each, except for a single larger row."""
    return configured(spark, {"spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20)})


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Configure a session for a while; None is the default of a setting."""
    before = {name: spark.conf.get(name, None) for name in settings}
    _configure(spark, settings)
    try:
        yield
    finally:
        with suppress(Exception):  # of a session that has ended, which hides why
            _configure(spark, before)


def _configure(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@contextmanager
def worded_faults(spark: SparkSession) -> Iterator[None]:
    """Raise Spark's own errors as EnvironmentFaultError with one sentence, also of a server that is gone, and soon."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with _few_tries(spark):
        try:
            yield
        except (PySparkException, Py4JError, ConnectionError) as fault:
            raise worded(fault) from fault


@contextmanager
def _few_tries(spark: SparkSession) -> Iterator[None]:
    """Have a client of Connect try for seconds to reach its server, and not for pyspark's ten minutes.

    It stays so where the server is gone: the end of the process asks it once more.
    """
    client = spark.client if is_remote(spark) else None
    if client is None or any(policy.max_retries == _TRIES for policy in client.get_retry_policies()):
        yield
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    before = client.get_retry_policies()
    client.set_retry_policies([DefaultPolicy(max_retries=_TRIES, max_backoff=_TRY_AGAIN_MS)])
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
            yield
    finally:
        if not server_gone(sys.exception()):
            client.set_retry_policies(before)
