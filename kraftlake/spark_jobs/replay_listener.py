"""How far a job's stream is, told by Spark after each micro-batch: a listener that users add to a session or a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kraftlake.runtime.log import get_logger

OBSERVED: Final = "kraftlake"
"""The name under which `observed` puts a micro-batch's records and last offset into a query's progress."""


def observed(log: DataFrame) -> DataFrame:
    """A stream of the log's rows that tells, in `observedMetrics`, how many there were and the last offset of them."""
    return log.observe(OBSERVED, f.count(f.lit(1)).alias("records"), f.max("offset").alias("offset"))


@attrs.frozen(kw_only=True)
class ReplayProgress:
    """What a micro-batch did.

    `records` rows of the log up to `offset`; `records_per_second` as Spark counts it; `bytes_outstanding` and
    `files_outstanding` of the log that are not in a micro-batch yet. `lag` counts the offsets of the log after
    `offset`, and `topics` and `partitions` those of the image there; None where only Spark was asked, not the run.
    """

    query: str
    batch_id: int
    offset: int
    records: int
    records_per_second: float
    duration_ms: int
    files_outstanding: int
    bytes_outstanding: int
    lag: int | None = None
    topics: int | None = None
    partitions: int | None = None


class ReplayListener(StreamingQueryListener):  # type: ignore[misc] # Spark is untyped here
    """Calls `on_progress` after each micro-batch of a job's stream that brought something.

    Give it to `run_tables` or `run_job`, which then tell it of the image too; or add it to a session, where it hears of
    all jobs in it: `spark.streams.addListener(ReplayListener())`. Without `on_progress` it writes to the log. It is
    called on a thread of Spark's.
    """

    def __init__(self, on_progress: Callable[[ReplayProgress], None] | None = None) -> None:
        self._on_progress = on_progress or _log
        self._noted: dict[tuple[str, int], dict[str, int]] = {}
        self._ended = threading.Event()
        self._ended.set()

    def await_end(self, seconds: float) -> bool:
        """Wait until a query has ended and all that was told of it was heard; False where that takes longer."""
        return self._ended.wait(seconds)

    def note(self, query: str, offset: int, *, lag: int, topics: int, partitions: int) -> None:
        """The run tells what it has made of the micro-batch that ends at `offset`, before Spark tells of it."""
        self._noted[query, offset] = {"lag": lag, "topics": topics, "partitions": partitions}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: ARG002, N802 - Spark's name
        """Nothing to tell yet."""
        self._ended.clear()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """A micro-batch is done."""
        progress = event.progress
        row = progress.observedMetrics.get(OBSERVED)
        if row is None or row["offset"] is None:
            return
        metrics: dict[str, Any] = progress.sources[0].metrics if progress.sources else {}
        query, offset = progress.name or "", int(row["offset"])
        self._on_progress(
            ReplayProgress(
                query=query,
                batch_id=progress.batchId,
                offset=offset,
                records=int(row["records"]),
                records_per_second=round(progress.processedRowsPerSecond, 1),
                duration_ms=progress.batchDuration,
                files_outstanding=int(metrics.get("numFilesOutstanding") or 0),
                bytes_outstanding=int(metrics.get("numBytesOutstanding") or 0),
                **self._noted.pop((query, offset), {}),
            )
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing came."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        """Whoever runs the stream says why; events come in their order, so none of its progress follows."""
        self._ended.set()


def _log(progress: ReplayProgress) -> None:
    get_logger(__name__).info("micro_batch", **attrs.asdict(progress))
