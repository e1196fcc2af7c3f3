"""The metrics of streams, by the progress that a listener reports."""

from __future__ import annotations

import attrs

from kraftlake.runtime.free_ports import free_ports
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.spark_jobs.replay_listener import ReplayProgress, StreamMetrics, stream_metrics
from tests.server.scraping import asked, samples

PROGRESS = ReplayProgress(
    query="all", batch_id=3, offset=99, records=50, records_per_second=25.0, duration_ms=2_000, records_outstanding=7,
)  # fmt: skip


def test_the_newest_progress_of_each_query_is_shown_without_what_is_unknown() -> None:
    registry = MetricsRegistry()
    metrics = StreamMetrics(registry)
    metrics.take(PROGRESS)
    metrics.take(attrs.evolve(PROGRESS, offset=120, lag=0))
    metrics.take(attrs.evolve(PROGRESS, query="events"))
    values = {str(sample.name): sample.value for sample in registry.samples()}
    assert values["kraftlake:type=stream,name=offset,query=all"] == 120
    assert values["kraftlake:type=stream,name=lag,query=all"] == 0
    assert values["kraftlake:type=stream,name=records_outstanding,query=events"] == 7
    assert "kraftlake:type=stream,name=lag,query=events" not in values


def test_a_stream_is_ready_with_its_first_micro_batch() -> None:
    (port,) = free_ports(1)
    with stream_metrics(MetricsAddress(port=port)) as metrics:
        assert asked(port, "/readyz") == (503, "no micro-batch has ended yet\n")
        metrics.take(PROGRESS)
        assert asked(port, "/readyz") == (200, "ok\n")
        assert samples(port)['kraftlake_stream_offset{query="all"}'] == 99
