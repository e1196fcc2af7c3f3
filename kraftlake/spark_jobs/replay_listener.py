"""A listener for the progress of a job's stream, after each micro-batch: users add it to a session or a run.

`StreamMetrics` makes metrics of what it reports.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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

from kraftlake.runtime.health import Health
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
from kraftlake.runtime.metrics_address import MetricsAddress

OBSERVED: Final = "kraftlake"
"""The name under which `observed` puts a micro-batch's records and last offset into a query's progress."""


def observed(steps: DataFrame) -> DataFrame:
    """A stream of `columns=offsets` with `observedMetrics`: the number of records and their last offset."""
    records = f.sum(f.col("last") - f.col("first") + 1)
    return steps.observe(OBSERVED, records.alias("records"), f.max("last").alias("offset"))


def _shown(text: str, **default: Any) -> Any:
    """A field that is a metric with this help text."""
    return attrs.field(metadata={"help": text}, **default)


@attrs.frozen(kw_only=True)
class ReplayProgress:
    """The progress of a stream after a micro-batch.

    `records` records of the log up to `offset` took `duration_ms`; `records_outstanding` are not in a micro-batch yet.
    `lag` is the number of the log's offsets after `offset`, `topics` and `partitions` those of the image there; None if
    the listener was added to a session only.
    """

    query: str
    offset: int = _shown("The last offset of the newest micro-batch.")
    batch_id: int = _shown("The number of the newest micro-batch.")
    records: int = _shown("Records of the newest micro-batch.")
    records_per_second: float = _shown("Records of the newest micro-batch a second.")
    duration_ms: int = _shown("The duration of the newest micro-batch, ms.")
    records_outstanding: int = _shown("Records of the log that are in no micro-batch yet.")
    lag: int | None = _shown("Offsets of the log after the newest micro-batch.", default=None)
    topics: int | None = _shown("Topics of the image there.", default=None)
    partitions: int | None = _shown("Partitions of the image there.", default=None)


class ReplayListener(StreamingQueryListener):  # type: ignore[misc] # Spark is untyped here
    """Calls `on_progress` after each micro-batch of a job's stream that had rows, on a thread of Spark's.

    Pass it to `run_tables` or `run_job`, which add the numbers of the image; or add it to a session for all its jobs:
    `spark.streams.addListener(ReplayListener())`. Without `on_progress` it writes log lines.
    """

    def __init__(self, on_progress: Callable[[ReplayProgress], None] | None = None) -> None:
        self._on_progress = on_progress or _log
        self._notes: dict[str, Callable[[], Mapping[int, dict[str, int]]]] = {}
        self._ended = threading.Event()
        self._ended.set()

    def await_end(self, seconds: float) -> bool:
        """Wait until a query has ended and all its events have arrived; False if that takes longer."""
        return self._ended.wait(seconds)

    def follow(self, query: str, notes: Callable[[], Mapping[int, dict[str, int]]]) -> None:
        """Add a run's numbers to a query's progress: `notes` returns those of micro-batches by last offset."""
        self._notes[query] = notes

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: ARG002, N802 - Spark's name
        """Register a query's start: `await_end` waits from now on."""
        self._ended.clear()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Report a micro-batch that has ended."""
        progress = event.progress
        row = progress.observedMetrics.get(OBSERVED)
        if row is None or row["offset"] is None:
            return
        (source,) = progress.sources
        end, newest = (json.loads(each)["offset"] for each in (source.endOffset, source.latestOffset))
        query, offset = progress.name or "", int(row["offset"])
        self._on_progress(
            ReplayProgress(
                query=query,
                batch_id=progress.batchId,
                offset=offset,
                records=int(row["records"]),
                records_per_second=round(int(row["records"]) * 1000 / max(progress.batchDuration, 1), 1),
                duration_ms=progress.batchDuration,
                records_outstanding=newest - end,
                **self._notes.get(query, dict)().get(offset, {}),
            )
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """A no-op: no rows have arrived."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        """Register a query's end; events come in order, so no progress follows. The run raises the query's error."""
        self._ended.set()


def _log(progress: ReplayProgress) -> None:
    get_logger(__name__).info("micro_batch", **attrs.asdict(progress))


class StreamMetrics:
    """Keeps the newest progress of each query; pass `take` to a `ReplayListener`.

    `listener = ReplayListener(StreamMetrics(registry).take)`.
    """

    def __init__(self, registry: MetricsRegistry) -> None:
        """Register `kraftlake_stream_…`, each with the label `query`."""
        self._newest: dict[str, ReplayProgress] = {}
        for field in attrs.fields(ReplayProgress)[1:]:
            registry.gauge(
                MetricName("kraftlake", "stream", field.name), field.metadata["help"], self._reader(field.name)
            )

    @property
    def unready(self) -> str | None:
        """Why no stream works: one line, None once one has ended a micro-batch."""
        return None if self._newest else "no micro-batch has ended yet"

    def take(self, progress: ReplayProgress) -> None:
        """Keep the progress of a micro-batch that has ended."""
        self._newest[progress.query] = progress

    def _reader(self, name: str) -> Callable[[], dict[Tags, float]]:
        def read() -> dict[Tags, float]:
            values = ((query, getattr(progress, name)) for query, progress in self._newest.copy().items())
            return {(("query", query),): value for query, value in values if value is not None}

        return read


@contextmanager
def stream_metrics(address: MetricsAddress) -> Iterator[StreamMetrics]:
    """Serve the metrics of streams within a context. Raises EnvironmentFaultError where the address is taken."""
    from kraftlake.runtime.metrics_server import served  # imports prometheus_client

    registry = MetricsRegistry()
    metrics = StreamMetrics(registry)
    with served(registry, address, Health(unready=lambda: metrics.unready)):
        yield metrics
