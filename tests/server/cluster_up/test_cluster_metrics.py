"""The metrics of a cluster of processes are those of its newest state."""

from __future__ import annotations

import attrs

from kraftlake.api import WatchState
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.cluster_health import HEALTH_COUNTS, ClusterHealth
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.server.cluster_up.cluster_metrics import ClusterMetrics
from kraftlake.server.cluster_up.cluster_state import ClusterState


def test_what_is_not_as_it_should_be_is_counted_once_there_is_a_state() -> None:
    metrics = ClusterMetrics()
    metrics.register()
    names = {sample.name.name for sample in metrics.registry.samples()}
    assert not names & {*HEALTH_COUNTS}
    health = ClusterHealth(under_min_isr_partitions=2, offline_directories=1)
    log = WatchState(
        leader=None, epoch=1, offset=7, timestamp=-1, counts=count_cluster(MetadataImage.EMPTY), seen_to=7,
        trouble=None, health=health,
    )  # fmt: skip
    metrics.state = ClusterState(nodes=(), log=log, leader=None, replicas_out_of_isr=0)
    served = {sample.name.name: sample.value for sample in metrics.registry.samples()}
    assert {name: served[name] for name in HEALTH_COUNTS} == attrs.asdict(health)
