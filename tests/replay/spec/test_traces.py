"""A violation is traced to the bug of Kafka that it shows, and one that looks alike is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraftlake.controller.configs.alter_configs import ConfigOperation, OpType, incremental_alter_configs
from kraftlake.controller.replication.alter_partition import IsrChange, alter_partition
from kraftlake.controller.replication.elections import maybe_elect_unclean_leaders
from kraftlake.controller.replication.reassignments import alter_partition_reassignments
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.replay.spec.known_bugs import (
    CANCELLED_TO_FENCED,
    ELR_KEEPS_REMOVED_REPLICA,
    ELR_LOST_BY_DIRECTORIES,
    EPOCH_OF_SAME_PROCESS,
    KNOWN_BUGS,
    LAST_KNOWN_LEADER_FENCED,
    NOBODY_LAST_KNOWN,
    REMOVED_IS_ELECTED,
    REPLACED_REASSIGNMENT_ADDS,
    UNFENCED_IN_SHUTDOWN,
    UNFENCED_WITH_LOST_DIRECTORY,
    KnownBug,
)
from kraftlake.replay.spec.properties import PROPERTIES
from tests.controller.controlled_cluster import ControlledCluster, directory
from tests.replay.spec.test_judge import add, change, cluster_at, judged, registration

ONE = ("orders", 0)


def bugs(cluster: ControlledCluster) -> dict[str, KnownBug | None]:
    """The violated properties of the topic's first partition, and the bug that each was traced to last."""
    return {one.name: one.known_bug for one in judged(cluster.log).violations if one.thing == "orders-0"}


def propose(cluster: ControlledCluster, *isr: int) -> None:
    known, brokers = cluster.partition("orders"), cluster.image.cluster.brokers
    wish = IsrChange(
        topic_id=cluster.topic_id("orders"),
        partition_id=0,
        leader_epoch=known.leader_epoch,
        partition_epoch=known.partition_epoch,
        new_isr=tuple((broker, brokers[broker].epoch) for broker in isr),
    )
    cluster.run(lambda state: alter_partition(state, known.leader, brokers[known.leader].epoch, [wish]))


def reassign(cluster: ControlledCluster, replicas: Sequence[int] | None) -> None:
    cluster.run(lambda state: alter_partition_reassignments(state, [(ONE, replicas)]))


def configure(cluster: ControlledCluster, name: str, value: str) -> None:
    changes = {ConfigResource(2, "orders"): {name: ConfigOperation(OpType.SET, value)}}
    cluster.run(lambda state: incremental_alter_configs(state, changes))


def test_bugs_violate_known_properties_and_say_when_they_were_mended() -> None:
    assert all(name in PROPERTIES for bug in KNOWN_BUGS for name in bug.properties)
    assert all((bug.mended is None) == (bug.until is None) for bug in KNOWN_BUGS)


@pytest.mark.parametrize(("level", "traced"), [(25, LAST_KNOWN_LEADER_FENCED), (26, None), (33, None)])
def test_a_fenced_last_known_leader_is_a_bug_of_kafka_4_0_alone(level: int, traced: KnownBug | None) -> None:
    cluster = cluster_at(level)
    for broker in (3, 2, 1):
        cluster.heartbeat(broker, want_fence=True)
    add(cluster, change(cluster, eligible_leader_replicas=()))  # its log is gone
    assert cluster.partition("orders").last_known_elr == (1,)
    add(cluster, change(cluster, isr=(1,), leader=1, leader_recovery_state=1, last_known_elr=()))
    found = bugs(cluster)
    assert found["leader_in_service"] == traced
    assert "leader_change_is_clean" not in found, "it says that it recovers"


def test_a_reassignment_that_ends_below_the_minimum_leaves_removed_replicas_in_the_elr() -> None:
    cluster = cluster_at()
    for broker in (2, 1):
        cluster.heartbeat(broker, want_fence=True)
    reassign(cluster, (1, 2, 4))
    assert cluster.partition("orders").isr == (3,)
    assert judged(cluster.log).holds
    propose(cluster, 3, 4)
    assert cluster.partition("orders").replicas == (1, 2, 4)
    assert cluster.partition("orders").elr == (1, 3)
    assert bugs(cluster) == {"elr_among_replicas": ELR_KEEPS_REMOVED_REPLICA}
    cluster.heartbeat(4, want_fence=True)
    assert (cluster.partition("orders").isr, cluster.partition("orders").elr) == ((), (1, 3, 4))
    assert bugs(cluster) == {"elr_among_replicas": ELR_KEEPS_REMOVED_REPLICA}, "it stays there"
    add(cluster, change(cluster, eligible_leader_replicas=(1, 3, 4, 5)))
    assert bugs(cluster)["elr_among_replicas"] is None, "it has never been a replica"


def test_a_cancelled_reassignment_leaves_added_replicas_in_the_elr() -> None:
    cluster = cluster_at()
    cluster.start(5)
    reassign(cluster, (1, 4, 5))
    for broker in (3, 2):
        cluster.heartbeat(broker, want_fence=True)
    propose(cluster, 1, 4)
    reassign(cluster, None)
    known = cluster.partition("orders")
    assert (known.replicas, known.isr, known.elr) == ((1, 2, 3), (1,), (4,))
    assert bugs(cluster) == {"elr_among_replicas": ELR_KEEPS_REMOVED_REPLICA}


def resumed() -> ControlledCluster:
    """Broker 1 has shut down as the last one in sync, and is unfenced by a heartbeat that it sent before."""
    cluster = cluster_at()
    for broker in (4, 3, 2):
        cluster.heartbeat(broker, want_fence=True)
    cluster.heartbeat(1, want_shut_down=True)
    while not cluster.heartbeat(1, want_shut_down=True).should_shut_down:
        pass
    assert judged(cluster.log).holds
    assert cluster.image.cluster.brokers[1].fenced
    cluster.heartbeat(1)
    return cluster


IN_SERVICE = ("leader_in_service", "isr_joins_in_service", "isr_in_service")


def test_a_broker_that_a_late_heartbeat_unfences_in_its_shutdown_is_elected() -> None:
    cluster = resumed()
    assert cluster.partition("orders").isr == (1,)
    assert cluster.image.cluster.brokers[1].in_controlled_shutdown
    assert bugs(cluster) == dict.fromkeys(IN_SERVICE, UNFENCED_IN_SHUTDOWN)
    cluster.heartbeat(3)
    assert bugs(cluster) == dict.fromkeys(IN_SERVICE, UNFENCED_IN_SHUTDOWN), "it leads on"


def test_who_is_elected_in_its_shutdown_without_being_unfenced_is_no_known_bug() -> None:
    cluster = cluster_at()
    cluster.heartbeat(2, want_shut_down=True)
    assert cluster.image.cluster.brokers[2].in_controlled_shutdown
    add(cluster, change(cluster, isr=(2, 1, 3), leader=2))
    found = bugs(cluster)
    assert [found[name] for name in (*IN_SERVICE, "leader_change_is_clean")] == [None] * 4


def test_who_is_elected_later_than_it_is_unfenced_in_its_shutdown_is_no_known_bug() -> None:
    cluster = resumed()
    before = judged(cluster.log).violations
    add(cluster, change(cluster, leader=-1, isr=(), eligible_leader_replicas=(1, 2), last_known_elr=(1,)))
    add(cluster, change(cluster, leader=1, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=()))
    later = [one for one in judged(cluster.log).violations if one not in before and one.name == "leader_in_service"]
    assert [one.known_bug for one in later] == [None]


def leaderless() -> ControlledCluster:
    """Nobody leads, and broker 1, which may, is registered anew with two directories."""
    cluster = cluster_at()
    for broker in (3, 2, 1):
        cluster.heartbeat(broker, want_fence=True)
    cluster.clock.advance(60_000)
    cluster.register(1, process=1, dirs=2, clean=cluster.image.cluster.brokers[1].epoch)
    assert 1 in cluster.partition("orders").elr
    return cluster


def test_a_broker_that_is_unfenced_as_it_reports_a_failed_directory_is_elected_there() -> None:
    cluster = leaderless()
    cluster.heartbeat(1, offline_log_dirs=(directory(1),))
    assert cluster.partition("orders").leader == 1
    assert bugs(cluster) == {"leader_directory_online": UNFENCED_WITH_LOST_DIRECTORY}


def test_who_has_reported_the_directory_before_is_not_elected_and_else_it_is_no_known_bug() -> None:
    cluster = leaderless()
    cluster.heartbeat(1, want_fence=True, offline_log_dirs=(directory(1),))
    cluster.heartbeat(1)
    assert cluster.partition("orders").leader == -1
    add(cluster, change(cluster, leader=1, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=()))
    assert bugs(cluster) == {"leader_directory_online": None}


def test_a_reassignment_that_adds_none_keeps_those_that_the_one_before_it_adds() -> None:
    cluster = cluster_at()
    reassign(cluster, (1, 4))
    assert judged(cluster.log).holds
    reassign(cluster, (1,))
    known = cluster.partition("orders")
    assert (known.adding_replicas, known.removing_replicas) == ((4,), (2, 3, 4))
    assert bugs(cluster) == {"reassignment_among_replicas": REPLACED_REASSIGNMENT_ADDS}


def test_a_replica_that_a_reassignment_adds_and_removes_at_once_is_no_known_bug() -> None:
    cluster = cluster_at()
    reassign(cluster, (1, 4))
    add(cluster, change(cluster, adding_replicas=(3, 4)))
    assert bugs(cluster) == {"reassignment_among_replicas": None}


def test_an_assignment_to_a_failed_directory_that_ends_a_reassignment_elects_a_removed_replica() -> None:
    cluster = cluster_at(elr=False)
    for broker in (3, 2):
        cluster.heartbeat(broker, want_fence=True)
    cluster.clock.advance(60_000)
    cluster.register(4, process=1, dirs=2)
    cluster.heartbeat(4)
    add(cluster, change(cluster, replicas=(4, 1), directories=(directory(4), directory(1)), adding_replicas=(4,)))
    add(cluster, change(cluster, isr=(4,), leader=4, leader_recovery_state=1))
    cluster.heartbeat(4, offline_log_dirs=(directory(4, 1),))
    ends = change(cluster, replicas=(4,), directories=(directory(4, 1),), adding_replicas=(), removing_replicas=())
    add(cluster, ends, change(cluster, isr=(1,), leader=1))
    assert bugs(cluster) == {"isr_among_replicas": REMOVED_IS_ELECTED}
    add(cluster, change(cluster, isr=(2,), leader=2))
    assert bugs(cluster)["isr_among_replicas"] is None, "nothing has ended"


def test_a_replica_that_restarts_out_of_order_or_is_voted_out_uncleanly_may_leave_the_elr() -> None:
    cluster = cluster_at()
    for broker in (3, 2, 1):
        cluster.heartbeat(broker, want_fence=True)
    assert cluster.partition("orders").elr == (1, 2)
    cluster.clock.advance(60_000)
    cluster.register(2, process=1)
    assert cluster.partition("orders").elr == (1,)
    configure(cluster, "unclean.leader.election.enable", "true")
    cluster.heartbeat(2)
    cluster.run(maybe_elect_unclean_leaders)
    assert (cluster.partition("orders").isr, cluster.partition("orders").elr) == ((2,), ())
    assert bugs(cluster) == {}


@pytest.mark.parametrize(("level", "traced"), [(29, ELR_LOST_BY_DIRECTORIES), (30, None)])
def test_an_assignment_to_directories_that_deletes_the_elr_is_a_bug_below_kafka_4_3(
    level: int, traced: KnownBug | None
) -> None:
    cluster = cluster_at(level)
    for broker in (3, 2):
        cluster.heartbeat(broker, want_fence=True)
    moved = (directory(1, 1), directory(2), directory(3))
    add(cluster, change(cluster, directories=moved, eligible_leader_replicas=()))
    assert bugs(cluster) == {"elr_keeps_members": traced}


@pytest.mark.parametrize(("level", "traced"), [(20, EPOCH_OF_SAME_PROCESS), (21, None)])
def test_a_new_epoch_of_the_same_process_is_a_bug_below_kafka_3_9(level: int, traced: KnownBug | None) -> None:
    cluster = cluster_at(level, elr=False)
    add(cluster, registration(cluster))
    add(cluster, registration(cluster))
    assert [(one.name, one.known_bug) for one in judged(cluster.log).violations] == [("broker_epoch_is_offset", traced)]
    add(cluster, registration(cluster, broker_epoch=3))
    assert judged(cluster.log).violations[-1].known_bug is None, "3 is no offset of its batch"


def test_a_cancelled_reassignment_of_a_partition_that_nobody_may_lead_says_who_is_in_sync_and_led_last() -> None:
    cluster = cluster_at()
    reassign(cluster, (1, 2, 4))
    for broker in (4, 3, 2, 1):
        cluster.heartbeat(broker, want_fence=True)
    configure(cluster, "min.insync.replicas", "1")
    assert (cluster.partition("orders").elr, cluster.partition("orders").last_known_elr) == ((), ())
    configure(cluster, "unclean.leader.election.enable", "true")
    reassign(cluster, None)
    assert cluster.partition("orders").last_known_elr == (-1,)
    assert cluster.partition("orders").isr == (1,)
    assert bugs(cluster) == {"last_known_leader": NOBODY_LAST_KNOWN, "isr_joins_in_service": CANCELLED_TO_FENCED}
    add(cluster, change(cluster, isr=(1, 2)))
    assert bugs(cluster)["isr_joins_in_service"] is None, "it cancels nothing"
