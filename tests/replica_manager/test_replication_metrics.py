"""Kafka's metrics of a broker's replicas."""

from __future__ import annotations

from kraftlake.replica_manager import MemoryLogManager
from kraftlake.replica_manager.partition_log import LogConfig
from kraftlake.replica_manager.replication_metrics import gauges
from tests.replica_manager.brokers import D1, D2, change, partition, started, topic
from tests.replica_manager.cluster import Cluster


def test_partitions_are_counted_by_how_they_stand():
    logs = MemoryLogManager({"d1": D1, "d2": D2}, lambda _: LogConfig(min_insync_replicas=2))
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
        "UnderMinIsrPartitionCount": 1, "AtMinIsrPartitionCount": 2, "ReassigningPartitions": 1, "IsrExpands": 0,
        "IsrShrinks": 0, "FailedIsrUpdates": 0, "MaxLag": 0, "FailedPartitionsCount": 0,
    }  # fmt: skip
    me.hear(*(change(number, leader=2) for number in (0, 1, 2)))
    assert gauges(me.manager)["LeaderCount"] == 1
    assert gauges(me.manager)["UnderReplicatedPartitions"] == 0


def test_the_lag_of_fetchers_goes_when_the_role_changes():
    made = Cluster()
    made.create()
    made.tell()
    made.append(1, b"a", b"b")
    made.work()
    (fetcher,) = made.nodes[2].fetchers()
    name, state = next(iter(fetcher.states().items()))
    import attrs

    fetcher._states[name] = attrs.evolve(state, lag=7)
    assert gauges(made.nodes[2].manager)["MaxLag"] == 7
    made.elect(0, 2)
    made.tell()
    assert gauges(made.nodes[2].manager)["MaxLag"] == 0
