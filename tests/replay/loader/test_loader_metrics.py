from kraftlake.replay.loader.loader_metrics import MetadataLoaderMetrics
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.metrics import MetricsRegistry
from tests.replay.made_logs import TIME, log_of, metadata_version, reference_image, topic

BROKER = "kafka.server:type=broker-metadata-metrics,name="


def test_offset_time_and_lag_are_those_of_the_last_image() -> None:
    clock, metrics, registry = ManualClock(TIME + 500), MetadataLoaderMetrics(), MetricsRegistry()
    metrics.register(registry, clock)
    assert registry.value(BROKER + "last-applied-record-lag-ms") == 0, "nothing yet"

    metrics.high_watermark = 10
    metrics.applied(reference_image(log_of(1, [metadata_version(25)], [topic(1)])))

    assert registry.value(BROKER + "last-applied-record-offset") == 2
    assert registry.value(BROKER + "last-applied-record-timestamp") == TIME + 2
    assert registry.value(BROKER + "last-applied-record-lag-ms") == 498
    assert registry.value(BROKER + "last-applied-record-lag") == 7
    assert registry.value("kafka.server:type=MetadataLoader,name=CurrentMetadataVersion") == 25
    assert registry.value("kafka.server:type=MetadataLoader,name=FinalizedLevel,featureName=metadataVersion") == 25


def test_the_registry_shows_the_counted_values() -> None:
    metrics, registry = MetadataLoaderMetrics(), MetricsRegistry()
    metrics.register(registry, ManualClock())
    metrics.load_errors, metrics.apply_errors, metrics.skipped_records = 1, 2, 3
    assert registry.value(BROKER + "metadata-load-error-count") == 1
    assert registry.value(BROKER + "metadata-apply-error-count") == 2
    assert registry.value(BROKER + "metadata-skipped-record-count") == 3
    assert registry.value("kafka.server:type=MetadataLoader,name=CurrentControllerId") == -1
    metrics.idle.record(0, 0)
    metrics.idle.record(1, 4)
    assert registry.value("kafka.server:type=MetadataLoader,name=AvgIdleRatio") == 0.25


def test_a_leader_is_the_node_that_the_epoch_names() -> None:
    assert LeaderAndEpoch(leader_id=3, epoch=1).is_leader(3)
    assert not LeaderAndEpoch.UNKNOWN.is_leader(3)
