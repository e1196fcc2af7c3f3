from __future__ import annotations

from hypothesis import given

from kraftlake.delta.from_empty import delta_from_empty
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.records import metadata_records as r
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LogDeltaManifest, SnapshotManifest
from kraftlake.runtime.metrics import MetricsRegistry
from tests.histories import split_histories
from tests.publisher.updates import broker, cluster, new_leader, topic_of
from tests.replay.made_logs import uuid_of


@given(split_histories())
def test_counting_changes_is_counting_the_image(batches: list[list[ApiMessageAndVersion]]) -> None:
    step_by_step, image, offset = ControllerMetadataMetrics(), MetadataImage.EMPTY, -1
    for batch in batches:
        delta = MetadataDelta(image)
        for record in batch:
            delta.replay(record.message)
            offset += 1
        image = delta.apply(MetadataProvenance(offset=offset, epoch=1))
        manifest = LogDeltaManifest(provenance=image.provenance, base_offset=0, num_batches=1, num_bytes=1)
        step_by_step.on_metadata_update(delta, image, manifest)
        assert step_by_step.counts == count_cluster(image)
    at_once = ControllerMetadataMetrics()
    at_once.on_metadata_update(delta_from_empty(image), image, SnapshotManifest(provenance=image.provenance))
    assert at_once.counts == step_by_step.counts


def test_kafkas_names_show_the_counts() -> None:
    metrics, registry = ControllerMetadataMetrics(), MetricsRegistry()
    metrics.register(registry)
    made = cluster(broker(1), broker(2, fenced=True), *topic_of("foo", 1, (1, (1, 2)), (1, (2, 1))), parts=(metrics,))
    made.change(r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, in_controlled_shutdown=1))
    controller = "kafka.controller:type=KafkaController,name="
    assert registry.value(controller + "ActiveBrokerCount") == 1
    assert registry.value(controller + "ControlledShutdownBrokerCount") == 1
    assert registry.value(controller + "PreferredReplicaImbalanceCount") == 1
    assert registry.value(controller + "BrokerRegistrationState,broker=1") == 20
    assert registry.value(controller + "BrokerRegistrationState,broker=2") == 10
    assert metrics.name == "ControllerMetadataMetricsPublisher"
    metrics.on_controller_change(LeaderAndEpoch.UNKNOWN)
    metrics.close()


def test_deleting_a_topic_subtracts_its_partitions_from_every_count() -> None:
    metrics = ControllerMetadataMetrics()
    made = cluster(*topic_of("foo", 1, (-1, (1, 2)), (2, (1, 2))), *topic_of("bar", 2, (1, (1,))), parts=(metrics,))
    assert (metrics.counts.offline_partitions_count, metrics.counts.preferred_replica_imbalance_count) == (1, 2)
    made.change(r.RemoveTopicRecord(topic_id=uuid_of(1)))
    assert metrics.counts == count_cluster(made.image)
    assert (metrics.counts.global_partition_count, metrics.counts.offline_partitions_count) == (1, 0)


def test_elections_are_counted_since_the_start() -> None:
    metrics, registry = ControllerMetadataMetrics(), MetricsRegistry()
    metrics.register(registry)
    made = cluster(broker(1), *topic_of("foo", 1, (1, (1, 2))), parts=(metrics,))
    made.change(new_leader(1, 0, 2, isr=(2,), leader_recovery_state=1))
    made.change(new_leader(1, 0, -1, isr=(), eligible_leader_replicas=(1,)))
    made.change(new_leader(1, 0, 1, isr=(1,), eligible_leader_replicas=(), leader_recovery_state=0))
    stats = "kafka.controller:type=ControllerStats,name="
    assert registry.value(stats + "UncleanLeaderElectionsPerSecCount") == 1
    assert registry.value(stats + "ElectionFromEligibleLeaderReplicasPerSecCount") == 1
