"""The job `replay`: a structured stream from a lake's log into images, local changes and snapshots."""

from __future__ import annotations

import fcntl
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.image import MetadataImage
from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.delta_log import TableState, read_table
from kraftlake.replay.open_reader import LakeReader
from kraftlake.runtime.errors import EnvironmentFaultError, KraftlakeError, LakeError, UsageError
from kraftlake.spark_jobs.local_changes import LocalChangesTable
from kraftlake.spark_jobs.log_fold import LogFold
from kraftlake.spark_jobs.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES, SnapshotPublisher
from kraftlake.spark_jobs.stream_start import StreamStart, choose_start, discard, resumable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Progress = Callable[[int, int], None]
"""Told after each publication: the last offset that is published, and where the log ended when the job began."""

AVAILABLE_NOW = "available-now"
LOG_TABLE = "log"
JOBS_FOLDER = "_spark"
"""Where jobs keep what is theirs in a lake: a lock, and checkpoints of streams. It can be deleted at any time."""

_CATCH_UP_BYTES = 16 * 1024 * 1024
_INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")
_POLL_SECONDS = 0.2


@attrs.frozen(kw_only=True)
class ReplayResult:
    """What a run did.

    `image` is the newest image and `offset` the last offset taken in (its own offset is lower only where a metadata
    transaction is open at the end). `batches` log batches made `deltas` metadata deltas, which made
    `local_change_rows` rows; `snapshots` are the end offsets of the snapshots written. All of them count this run
    alone. `micro_batches` counts those of the stream, `base_offset` is where the run began: the last offset that an
    earlier run had published, -1 for none. `unwritable` says why the newest image has no snapshot, if it has none.
    """

    image: MetadataImage
    offset: int
    base_offset: int
    batches: int
    deltas: int
    local_change_rows: int
    snapshots: tuple[int, ...]
    micro_batches: int
    unwritable: str | None = None


def run_replay(
    lake: str | Path,
    *,
    spark: SparkSession | None = None,
    trigger: str = AVAILABLE_NOW,
    max_files_per_trigger: int | None = None,
    checkpoint: str | Path | None = None,
    on_progress: Progress | None = None,
    until_offset: int | None = None,
    snapshot_every_bytes: int = DEFAULT_SNAPSHOT_BYTES,
) -> ReplayResult:
    """Replay what the lake's log holds beyond what was replayed before, into `local_changes/` and `snapshots/`.

    One metadata delta for each log batch, one for a metadata transaction; the result depends on the log alone, not on
    how the stream cuts it, nor on runs that were killed. The tables themselves know how far they are: the stream's
    `checkpoint` (default: in the lake's `_spark/`) may be deleted.

    `trigger` is "available-now", which ends when everything that was there is replayed, or an interval such as
    "2 seconds", which goes on until it is interrupted or has reached `until_offset`. `spark` None takes the
    session that is active, or starts one (`spark_session`) if there is something to do, and stops it at the end.

    Raises LakeError where there is no lake, another replay runs on it or its tables contradict each other;
    UsageError for a trigger or checkpoint that makes no sense; EnvironmentFaultError when Spark fails; and what the
    replay of a record raises, with its offset.
    """
    if trigger != AVAILABLE_NOW and not _INTERVAL.fullmatch(trigger):
        raise UsageError(f'a trigger is "{AVAILABLE_NOW}" or an interval such as "2 seconds", not {trigger!r}')
    if max_files_per_trigger is not None and max_files_per_trigger < 1:
        raise UsageError(f"a micro-batch takes at least 1 file, not {max_files_per_trigger}")
    lake = Path(lake).resolve()  # Delta takes a relative path for the name of a table
    MetadataLog.open(lake)  # says what is wrong with the lake before anything is made in it
    with _only_one(lake), _Session(spark) as session:
        job = _ReplayJob(lake, session, snapshot_every_bytes, on_progress)
        folder = Path(checkpoint).resolve() if checkpoint else lake / JOBS_FOLDER / "replay"
        job.run(trigger, max_files_per_trigger, folder, until_offset)
        return job.result()


class _Session:
    """The Spark session of a run, started when it is first asked for: a run with nothing to do starts no JVM."""

    def __init__(self, spark: SparkSession | None) -> None:
        self._spark = spark
        self._ours = False

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None and self._ours:
            self._spark.stop()

    def get(self) -> SparkSession:
        if self._spark is None:
            from pyspark import SparkContext

            from kraftlake.spark_jobs.session import spark_session

            self._ours = SparkContext._active_spark_context is None
            self._spark = spark_session("kraftlake replay")
        return self._spark


@contextmanager
def _only_one(lake: Path) -> Iterator[None]:
    """Holds the lake's lock for replay jobs; a process that dies lets go of it."""
    folder = lake / JOBS_FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = (folder / "replay.lock").open("w")
    except OSError as fault:
        raise LakeError(f"{folder} can't be written: {fault.strerror or fault}") from fault
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LakeError(f"another replay is running on {lake}: wait until it ends, or stop it") from None
        yield


class _ReplayJob:
    """One run: the base from the table itself, then the stream, both through the same fold into the same targets."""

    def __init__(self, lake: Path, session: _Session, snapshot_every_bytes: int, on_progress: Progress | None) -> None:
        self._session = session
        self._lake = lake
        # The table's state first: whatever is appended after it comes through the stream.
        self._log: TableState = read_table(lake / LOG_TABLE)
        log = MetadataLog.open(lake)
        self._end_offset = log.end_offset
        self._snapshots = SnapshotPublisher(log, snapshot_every_bytes)
        self._table = LocalChangesTable(lake)
        self._fold = LogFold(LakeReader(log), self._snapshots)
        self._on_progress = on_progress
        self._rows = 0
        self._micro_batches = 0
        self._base_offset = -1
        self._fault: BaseException | None = None
        self._reached = threading.Event()

    def run(self, trigger: str, max_files: int | None, checkpoint: Path, until_offset: int | None) -> None:
        published_to = self._table.last_offset()
        self._fold.begin(published_to)
        if published_to is None:
            self._table.create(self._session.get())
        self._base_offset = -1 if published_to is None else published_to
        needed = self._fold.last_offset + 1
        start = None
        if published_to is None or not resumable(checkpoint, self._log, end_offset=self._end_offset, needed=needed):
            discard(checkpoint)
            start = choose_start(self._log, end_offset=self._end_offset, needed=needed)
            self._catch_up(start.end_offset - 1)
        if trigger == AVAILABLE_NOW and self._fold.last_offset + 1 >= self._end_offset:
            self._finish()
            return
        query = self._writer(start, max_files, checkpoint, trigger, until_offset).start()
        self._await(query, until_offset)
        self._finish()

    def result(self) -> ReplayResult:
        return ReplayResult(
            image=self._fold.image,
            offset=self._fold.last_offset,
            base_offset=self._base_offset,
            batches=self._fold.batches,
            deltas=self._fold.deltas,
            local_change_rows=self._rows,
            snapshots=tuple(self._snapshots.written),
            micro_batches=self._micro_batches,
            unwritable=self._snapshots.unwritable,
        )

    def _catch_up(self, to_offset: int) -> None:
        """Reads from the table itself what the stream won't bring, and publishes it in pieces of bounded size."""
        size = 0
        for batch_size in self._fold.take_log(to_offset):
            size += batch_size
            if size >= _CATCH_UP_BYTES:
                self._publish()
                size = 0
        if size or self._fold.deltas:
            self._publish()

    def _writer(
        self, start: StreamStart | None, max_files: int | None, checkpoint: Path, trigger: str, until_offset: int | None
    ) -> DataStreamWriter:
        reader = self._session.get().readStream.format("delta").option("ignoreDeletes", "true")
        if start is not None:
            # Delta refuses to start behind the newest version: the newest then comes once more, and is dropped.
            reader = reader.option("startingVersion", min(start.version + 1, self._log.version))
        if max_files is not None:
            reader = reader.option("maxFilesPerTrigger", max_files)
        stream = reader.load(str(self._lake / LOG_TABLE))
        writer = stream.writeStream.queryName("kraftlake-replay").option("checkpointLocation", str(checkpoint))
        writer = writer.foreachBatch(lambda frame, _: self._micro_batch(frame, until_offset))
        if trigger == AVAILABLE_NOW:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=trigger)

    def _micro_batch(self, frame: DataFrame, until_offset: int | None) -> None:
        """One micro-batch, on a thread of Spark's; its error is kept, for Spark turns it into text."""
        try:
            self._micro_batches += 1
            # Sorting in Arrow reads the input once; orderBy would read it twice.
            if self._fold.take_rows(frame.toArrow()):
                self._publish()
            if until_offset is not None and self._fold.last_offset >= until_offset:
                self._reached.set()
        except BaseException as fault:
            self._fault = fault
            raise

    def _publish(self) -> None:
        """Snapshots are written by now: the offset that the table notes comes last, so that a rerun misses none."""
        rows = self._fold.drain()
        self._table.append(self._session.get(), rows, self._fold.last_offset)
        self._rows += rows.num_rows
        if self._on_progress is not None:
            self._on_progress(self._fold.last_offset, self._end_offset)

    def _finish(self) -> None:
        if self._fold.last_offset + 1 < self._end_offset and not self._reached.is_set():
            raise LakeError(
                f"the stream over {self._lake} ended at offset {self._fold.last_offset}, but its log ends before "
                f"{self._end_offset}: delete the stream's checkpoint and run again"
            )
        self._fold.finish()

    def _await(self, query: StreamingQuery, until_offset: int | None) -> None:
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                if until_offset is not None and self._reached.is_set():
                    break
        except Exception as fault:
            if self._fault is None:
                raise EnvironmentFaultError(_told(fault)) from fault
        finally:
            _stop(query)
        if isinstance(self._fault, KraftlakeError):
            raise self._fault
        if self._fault is not None:
            raise EnvironmentFaultError(_told(self._fault)) from self._fault


def _stop(query: StreamingQuery) -> None:
    if query.isActive:
        query.stop()


def _told(fault: BaseException) -> str:
    """What a stream failed with, as one sentence."""
    text = str(fault)
    if "FileNotFoundException" in text or "DELTA_VERSION_NOT_FOUND" in text or "failOnDataLoss" in text:
        return "files or versions of the lake were removed while the stream read them: run again"
    first: Any = next((line.strip() for line in text.splitlines() if line.strip()), type(fault).__name__)
    return f"Spark failed: {first[:300]}"
