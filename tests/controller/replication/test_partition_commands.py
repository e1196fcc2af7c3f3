"""Commands on partitions: ISR changes, elections, reassignments."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.controller.cluster.brokers import unregister_broker
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.alter_partition import IsrAnswer, IsrChange, alter_partition
from kraftlake.controller.replication.elections import (
    ElectionType,
    elect_leaders,
    maybe_balance_leaders,
    maybe_elect_unclean_leaders,
)
from kraftlake.controller.replication.reassignments import (
    OngoingReassignment,
    alter_partition_reassignments,
    list_partition_reassignments,
)
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid
from tests.controller.controlled_cluster import ControlledCluster


@pytest.fixture
def cluster() -> ControlledCluster:
    cluster = ControlledCluster(features={"eligible.leader.replicas.version": 0})
    cluster.start(1, 2, 3, 4)
    cluster.assigned("orders", (1, 2, 3))
    return cluster


def wish(cluster: ControlledCluster, *isr: int, **changes: Any) -> IsrChange:
    partition = cluster.partition("orders")
    fields: dict[str, Any] = {
        "topic_id": cluster.topic_id("orders"),
        "partition_id": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "new_isr": tuple((broker, cluster.image.cluster.brokers[broker].epoch) for broker in isr),
    }
    return IsrChange(**(fields | changes))


def alter(cluster: ControlledCluster, change: IsrChange, broker: int = 1) -> IsrAnswer:
    epoch = cluster.image.cluster.brokers[broker].epoch
    (answer,) = cluster.run(lambda state: alter_partition(state, broker, epoch, [change]))
    return answer


def test_a_leader_shrinks_and_expands_its_isr(cluster: ControlledCluster) -> None:
    shrunk = alter(cluster, wish(cluster, 1, 2))
    assert shrunk.partition == cluster.partition("orders")
    assert (cluster.partition("orders").isr, cluster.partition("orders").leader_epoch) == ((1, 2), 0)
    alter(cluster, wish(cluster, 1, 2, 3))
    assert (cluster.partition("orders").isr, cluster.partition("orders").partition_epoch) == ((1, 2, 3), 2)


@pytest.mark.parametrize(
    ("changes", "broker", "error"),
    [
        ({"topic_id": Uuid(b"nobody-has-this!")}, 1, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition_id": 7}, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 5}, 1, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 5}, 1, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, 1, ErrorCode.FENCED_LEADER_EPOCH),
        ({}, 2, ErrorCode.INVALID_REQUEST),
        ({"partition_epoch": -1}, 1, ErrorCode.INVALID_UPDATE_VERSION),
        ({"new_isr": ((2, -1), (3, -1))}, 1, ErrorCode.INVALID_REQUEST),
        ({"new_isr": ((1, -1), (1, -1))}, 1, ErrorCode.INVALID_REQUEST),
        ({"new_isr": ((1, -1), (4, -1))}, 1, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 1}, 1, ErrorCode.INVALID_REQUEST),
        ({"new_isr": ((1, -1), (2, 99))}, 1, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_an_invalid_isr_is_refused(
    cluster: ControlledCluster, changes: dict[str, Any], broker: int, error: ErrorCode
) -> None:
    assert alter(cluster, wish(cluster, 1, 2, **changes), broker).error is error
    assert cluster.added == []


def test_a_fenced_replica_cannot_join_the_isr(cluster: ControlledCluster) -> None:
    cluster.heartbeat(3, want_fence=True)
    assert alter(cluster, wish(cluster, 1, 2, 3)).error is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_of_an_old_epoch_changes_nothing(cluster: ControlledCluster) -> None:
    with pytest.raises(ControllerApiError) as refused:
        cluster.run(lambda state: alter_partition(state, 1, 0, [wish(cluster, 1, 2)]))
    assert refused.value.error is ErrorCode.STALE_BROKER_EPOCH


def move(cluster: ControlledCluster, replicas: tuple[int, ...] | None, **options: bool) -> ErrorCode:
    targets = [(("orders", 0), replicas)]
    return cluster.run(lambda state: alter_partition_reassignments(state, targets, **options))["orders", 0].error


def test_a_reassignment_is_complete_when_the_new_replica_is_in_sync(cluster: ControlledCluster) -> None:
    assert move(cluster, (1, 2, 4)) is ErrorCode.NONE
    assert list_partition_reassignments(cluster.image) == {
        ("orders", 0): OngoingReassignment(replicas=(1, 2, 4, 3), adding_replicas=(4,), removing_replicas=(3,))
    }
    answer = alter(cluster, wish(cluster, 1, 2, 3, 4))
    assert answer.error is ErrorCode.NONE
    assert (cluster.partition("orders").replicas, cluster.partition("orders").isr) == ((1, 2, 4), (1, 2, 4))
    assert list_partition_reassignments(cluster.image, [("orders", 0)]) == {}


def test_a_leader_that_a_reassignment_removes_gets_new_leader_elected(cluster: ControlledCluster) -> None:
    assert move(cluster, (2, 3, 4)) is ErrorCode.NONE
    assert alter(cluster, wish(cluster, 1, 2, 3, 4)).error is ErrorCode.NEW_LEADER_ELECTED
    assert cluster.partition("orders").leader == 2


def test_a_reassignment_is_cancelled(cluster: ControlledCluster) -> None:
    assert move(cluster, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    move(cluster, (1, 2, 4))
    assert move(cluster, None) is ErrorCode.NONE
    assert cluster.partition("orders").replicas == (1, 2, 3)
    assert cluster.partition("orders").adding_replicas == ()


def test_a_moved_eligible_leader_is_removed_when_its_broker_unregisters() -> None:
    cluster = ControlledCluster()
    cluster.start(1, 2)
    cluster.assigned("orders", (1, 2), configs={"min.insync.replicas": "2"})
    alter(cluster, wish(cluster, 1))
    move(cluster, (1,))
    assert (cluster.partition("orders").replicas, cluster.partition("orders").elr) == ((1,), (2,))
    cluster.run(lambda state: unregister_broker(state, 2))
    assert cluster.partition("orders").elr == ()


def test_a_reassignment_to_no_replicas_is_refused(cluster: ControlledCluster) -> None:
    assert move(cluster, ()) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, (1, 9)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(cluster, (1, 2), allow_replication_factor_change=False) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_preferred_leader_is_elected_again(cluster: ControlledCluster) -> None:
    cluster.heartbeat(1, want_fence=True)
    assert cluster.partition("orders").leader == 2
    elect = lambda state: elect_leaders(state, ElectionType.PREFERRED, [("orders", 0), ("orders", 1)])  # noqa: E731
    answers = cluster.run(elect)
    assert answers["orders", 0].error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert answers["orders", 1].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.heartbeat(1)
    alter(cluster, wish(cluster, 1, 2, 3), broker=2)
    assert cluster.run(maybe_balance_leaders) is False
    assert cluster.partition("orders").leader == 1
    assert cluster.run(elect)["orders", 0].error is ErrorCode.ELECTION_NOT_NEEDED


def test_balancing_elects_a_limited_number_of_leaders_at_a_time() -> None:
    cluster = ControlledCluster(max_elections_per_imbalance=2)
    cluster.start(1, 2)
    cluster.assigned("orders", (1, 2), (1, 2), (1, 2))
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    for number in range(3):
        partition = cluster.partition("orders", number)
        change = IsrChange(
            topic_id=cluster.topic_id("orders"), partition_id=number, new_isr=((2, -1), (1, -1)),
            leader_epoch=partition.leader_epoch, partition_epoch=partition.partition_epoch,
        )  # fmt: skip
        alter(cluster, change, broker=2)
    assert cluster.run(maybe_balance_leaders) is True
    assert [cluster.partition("orders", number).leader for number in range(3)] == [1, 1, 2]
    assert cluster.run(maybe_balance_leaders) is False


def test_an_unclean_election_is_held_on_request_or_by_config(cluster: ControlledCluster) -> None:
    alter(cluster, wish(cluster, 1))
    cluster.assigned("risky", (1, 2), configs={"unclean.leader.election.enable": "true"})
    cluster.heartbeat(1, want_fence=True)
    assert cluster.partition("orders").leader == NO_LEADER
    assert cluster.run(maybe_elect_unclean_leaders) is False
    assert cluster.partition("orders").leader == NO_LEADER
    answers = cluster.run(lambda state: elect_leaders(state, ElectionType.UNCLEAN, None))
    assert answers["orders", 0].error is ErrorCode.NONE
    assert ("risky", 0) not in answers, "it has a leader"
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, int(partition.leader_recovery_state)) == (2, (2,), 1)
