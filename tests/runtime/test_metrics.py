import pytest

from kraftlake.runtime.log import without_logs
from kraftlake.runtime.metrics import MetricName, MetricsRegistry

OFFSET = MetricName("kafka.server", "broker-metadata-metrics", "last-applied-record-offset")
LEVEL = MetricName("kafka.server", "MetadataLoader", "FinalizedLevel")


def test_a_gauge_is_read_on_request() -> None:
    registry, offsets = MetricsRegistry(), [7]
    registry.gauge(OFFSET, "The last offset that was applied.", lambda: offsets[-1])
    assert registry.value("kafka.server:type=broker-metadata-metrics,name=last-applied-record-offset") == 7
    offsets.append(8)
    ((name, value, description),) = [(s.name, s.value, s.description) for s in registry.samples()]
    assert (name, value, description) == (OFFSET, 8, "The last offset that was applied.")


def test_a_gauge_with_tags_has_a_value_for_each() -> None:
    registry = MetricsRegistry()
    registry.gauge(LEVEL, "Levels.", lambda: {(("featureName", "b"),): 2, (("featureName", "a"),): 1})
    assert [(str(sample.name), sample.value) for sample in registry.samples()] == [
        ("kafka.server:type=MetadataLoader,name=FinalizedLevel,featureName=a", 1),
        ("kafka.server:type=MetadataLoader,name=FinalizedLevel,featureName=b", 2),
    ]


def test_a_gauge_that_raises_does_not_hide_other_gauges() -> None:
    registry = MetricsRegistry()
    registry.gauge(OFFSET, "", lambda: 1 / 0)
    registry.gauge(LEVEL, "", lambda: 5)
    with without_logs():
        assert [(sample.name, sample.value) for sample in registry.samples()] == [(LEVEL, 5)]


def test_a_name_can_be_registered_only_once() -> None:
    registry = MetricsRegistry()
    registry.gauge(OFFSET, "", lambda: 1)
    with pytest.raises(ValueError, match="last-applied-record-offset already"):
        registry.gauge(OFFSET, "", lambda: 2)
    assert [sample.value for sample in registry.samples()] == [1]


def test_the_prometheus_name_is_one_word() -> None:
    assert OFFSET.prometheus_name == "kafka_server_broker_metadata_metrics_last_applied_record_offset"
