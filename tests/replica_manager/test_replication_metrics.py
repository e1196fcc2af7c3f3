"""Kafka's metrics of a broker's replicas."""

from __future__ import annotations

import attrs

from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.replication_metrics import gauges, register_metrics
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from kraftlake.runtime.metrics import MetricsRegistry
from tests.replica_manager.brokers import D1, D2, change, partition, started, topic
from tests.replica_manager.cluster import Cluster


def test_partitions_are_counted_by_their_state():
    logs = MemoryLogManager({"d1": D1, "d2": D2}, LogConfig(min_insync_replicas=2))
    me = started(
        topic(),
        partition(0, leader=1),
        partition(1, leader=1, isr=(1, 2)),
        partition(2, leader=1, isr=(1,)),
        partition(3, leader=2),
        partition(4, leader=1, directories=(D2, D1, D1)),
        partition(5, leader=1, replicas=(1, 2, 3), adding_replicas=(3,), isr=(1, 2)),
        log_manager=logs,
    )
    me.manager.handle_log_dir_failure("d2")
    counted = gauges(me.manager)
    assert counted == {
        "PartitionCount": 6, "LeaderCount": 4, "OfflineReplicaCount": 1, "UnderReplicatedPartitions": 2,
        "UnderMinIsrPartitionCount": 1, "AtMinIsrPartitionCount": 2, "ReassigningPartitions": 1,
        "IsrExpandsPerSecCount": 0, "IsrShrinksPerSecCount": 0, "FailedIsrUpdatesPerSecCount": 0,
    }  # fmt: skip
    me.hear(*(change(number, leader=2) for number in (0, 1, 2)))
    assert gauges(me.manager)["LeaderCount"] == 1
    assert gauges(me.manager)["UnderReplicatedPartitions"] == 0


def shown(registry: MetricsRegistry) -> dict[str, float]:
    return {str(sample.name).removeprefix("kafka.server:type="): sample.value for sample in registry.samples()}


def test_fetchers_and_lags_have_kafkas_metric_names_and_end_with_the_role():
    made = Cluster()
    made.create()
    made.publish()
    registry = MetricsRegistry()
    register_metrics(made.nodes[2].manager, registry)
    made.append(1, b"a", b"b")
    made.work()
    (fetcher,) = made.nodes[2].fetchers()
    name, state = next(iter(fetcher.states().items()))
    fetcher._states[name] = attrs.evolve(state, lag=7)
    values = shown(registry)
    thread = "clientId=ReplicaFetcherThread-0-1"
    assert values[f"FetcherLagMetrics,name=ConsumerLag,{thread},topic=foo,partition=0"] == 7
    assert values["ReplicaFetcherManager,name=MaxLag,clientId=Replica"] == 7
    assert values["ReplicaAlterLogDirsManager,name=FailedPartitionsCount,clientId=ReplicaAlterLogDirs"] == 0
    assert values[f"FetcherStats,name=RequestsPerSecCount,{thread},brokerHost=h,brokerPort=9001"] == 1
    size = made.nodes[1].log(name).batches[0].size
    assert values[f"FetcherStats,name=BytesPerSecCount,{thread},brokerHost=h,brokerPort=9001"] == size
    made.elect(0, 2)
    made.publish()
    values = shown(registry)
    assert values["ReplicaFetcherManager,name=MaxLag,clientId=Replica"] == 0
    assert values["ReplicaManager,name=LeaderCount"] == 1
    assert not [key for key in values if key.startswith(("FetcherLagMetrics", "FetcherStats"))]


def test_a_fetcher_thread_has_the_metrics_of_its_fetcher():
    made = Cluster()
    made.create()
    made.publish()
    (fetcher,) = made.nodes[2].fetchers()
    thread = ReplicaFetcherThread(fetcher, backoff_ms=1, fault_handler=LoggingFaultHandler("test"))
    made.append(1)
    made.work(2)
    assert thread.figures() == fetcher.figures()
    assert thread.figures().requests == 2
