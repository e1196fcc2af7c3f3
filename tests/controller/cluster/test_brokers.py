"""Registration, heartbeats and unregistration of brokers, and the effect on their partitions."""

from __future__ import annotations

import pytest

from kraftlake.controller.cluster.brokers import maybe_fence_stale_broker, register_broker, unregister_broker
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.directories import assign_replicas_to_dirs
from kraftlake.controller.replication.elections import ElectionType, elect_leaders
from kraftlake.controller.replication.reassignments import alter_partition_reassignments
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import (
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kraftlake.records.uuid import Uuid
from tests.controller.controlled_cluster import ALL_FEATURES, CLUSTER_ID, ControlledCluster, directory, incarnation


def without_elr(**config: int) -> ControlledCluster:
    return ControlledCluster(features={"eligible.leader.replicas.version": 0}, **config)


def test_a_broker_is_fenced_until_it_has_applied_its_registration() -> None:
    cluster = ControlledCluster()
    epoch = cluster.register(1)
    assert epoch == cluster.state.next_offset - 1, "the epoch is the offset of the record"
    behind = cluster.heartbeat(1, offset=epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    assert cluster.heartbeat(1, offset=epoch, want_fence=True).is_fenced
    assert not cluster.heartbeat(1, offset=epoch).is_fenced
    assert cluster.added == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)]


def test_a_new_incarnation_is_refused_until_the_old_session_has_expired() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    with pytest.raises(ControllerApiError) as refused:
        cluster.register(1, process=1)
    assert refused.value.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.clock.advance(9_001)
    epoch = cluster.register(1, process=1)
    registration = cluster.image.cluster.brokers[1]
    assert (registration.epoch, registration.fenced) == (epoch, True)


def test_the_same_incarnation_can_change_its_registration_and_keeps_its_epoch() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    epoch = cluster.image.cluster.brokers[1].epoch
    assert cluster.register(1, rack="b") == epoch
    registration = cluster.image.cluster.brokers[1]
    assert (registration.rack, registration.fenced) == ("b", False)


def request(**changes: object) -> BrokerRegistrationRequest:
    fields = {
        "broker_id": 5,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": incarnation(5),
        "features": ALL_FEATURES,
        "log_dirs": (directory(5),),
    }
    return BrokerRegistrationRequest(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (Uuid.ZERO,)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory(5), directory(5))}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory(1),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": ()}, ErrorCode.INVALID_REGISTRATION),
        (
            {"features": (BrokerFeature(name="metadata.version", min_supported_version=1, max_supported_version=20),)},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (
            {"features": tuple(feature for feature in ALL_FEATURES if feature.name != "group.version")},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_an_invalid_registration_is_refused_without_a_record(changes: dict[str, object], error: ErrorCode) -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    end = cluster.state.next_offset
    with pytest.raises(ControllerApiError) as refused:
        cluster.run(lambda state: register_broker(state, request(**changes)))
    assert refused.value.error is error
    assert cluster.state.next_offset == end


def test_a_session_expires_after_its_timeout_and_not_at_it() -> None:
    """As in Kafka's BrokerHeartbeatTracker: a heartbeat exactly at the timeout comes in time."""
    cluster = without_elr()
    cluster.start(1)
    cluster.clock.advance(cluster.config.broker_session_timeout_ms)
    assert cluster.run(maybe_fence_stale_broker) is False
    assert not cluster.image.cluster.brokers[1].fenced
    cluster.clock.advance(1)
    assert cluster.run(maybe_fence_stale_broker) is True
    assert cluster.image.cluster.brokers[1].fenced


def test_a_broker_without_heartbeats_for_a_session_is_fenced_and_loses_its_leaderships() -> None:
    cluster = without_elr()
    cluster.start(1, 2, 3)
    cluster.assigned("orders", (1, 2, 3), (2, 3, 1))
    cluster.clock.advance(8_000)
    cluster.heartbeat(2)
    cluster.heartbeat(3)
    cluster.clock.advance(1_500)
    assert cluster.run(maybe_fence_stale_broker) is True
    assert [type(message) for message in cluster.added] == [
        PartitionChangeRecord, PartitionChangeRecord, BrokerRegistrationChangeRecord,
    ]  # fmt: skip
    assert cluster.run(maybe_fence_stale_broker) is False
    first, second = cluster.partition("orders", 0), cluster.partition("orders", 1)
    assert (first.leader, first.isr, first.leader_epoch, first.partition_epoch) == (2, (2, 3), 1, 1)
    assert (second.leader, second.isr, second.leader_epoch, second.partition_epoch) == (2, (2, 3), 0, 1)
    assert cluster.image.cluster.brokers[1].fenced


def test_the_last_replica_in_sync_stays_in_the_isr_and_leads_again_after_a_restart() -> None:
    cluster = without_elr()
    cluster.start(1)
    cluster.assigned("orders", (1,))
    cluster.heartbeat(1, want_fence=True)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (NO_LEADER, (1,))
    cluster.heartbeat(1)
    assert cluster.partition("orders").leader == 1


def test_a_controlled_shutdown_moves_leaders_first_and_ends_when_all_active_brokers_have_applied_that() -> None:
    cluster = without_elr()
    cluster.start(1, 2)
    cluster.assigned("orders", (1, 2))
    for broker in (1, 2):
        cluster.heartbeat(broker)
    first = cluster.heartbeat(1, want_shut_down=True)
    moved_at = cluster.state.next_offset - 1
    assert (first.in_controlled_shutdown, first.should_shut_down, first.is_fenced) == (True, False, False)
    assert cluster.partition("orders").leader == 2
    assert cluster.image.cluster.brokers[1].in_controlled_shutdown
    cluster.heartbeat(2, offset=moved_at - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2, offset=moved_at)
    last = cluster.heartbeat(1, want_shut_down=True)
    assert (last.should_shut_down, last.is_fenced) == (True, True)
    assert cluster.image.cluster.brokers[1].fenced


def test_a_broker_that_leads_nothing_may_shut_down_at_once() -> None:
    cluster = ControlledCluster()
    cluster.start(1, 2)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_heartbeat_of_an_old_broker_epoch_is_refused() -> None:
    cluster = ControlledCluster()
    with pytest.raises(ControllerApiError) as refused:
        cluster.heartbeat(1)
    assert refused.value.error is ErrorCode.STALE_BROKER_EPOCH


def test_the_replicas_of_a_failed_directory_leave_their_isrs() -> None:
    cluster = without_elr()
    cluster.register(1, dirs=2)
    cluster.heartbeat(1)
    cluster.start(2)
    cluster.assigned("orders", (1, 2), (1, 2))
    epoch = cluster.image.cluster.brokers[1].epoch
    topic = cluster.topic_id("orders")
    places = {directory(1, 0): [(topic, 0)], directory(1, 1): [(topic, 1)]}
    cluster.run(lambda state: assign_replicas_to_dirs(state, 1, epoch, places))
    cluster.heartbeat(1, offline_log_dirs=(directory(1, 1),))
    assert cluster.partition("orders", 0).leader == 1
    assert (cluster.partition("orders", 1).leader, cluster.partition("orders", 1).isr) == (2, (2,))
    assert cluster.image.cluster.brokers[1].directories == (directory(1, 0),)
    answers = cluster.run(lambda state: elect_leaders(state, ElectionType.PREFERRED, [("orders", 1)]))
    assert answers["orders", 1].error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_a_replica_that_a_reassignment_removes_is_not_elected_by_the_assignment_that_ends_it() -> None:
    cluster = without_elr()
    cluster.start(1)
    cluster.register(2, dirs=2)
    cluster.heartbeat(2)
    cluster.assigned("orders", (1,), configs={"unclean.leader.election.enable": "true"})
    cluster.run(lambda state: alter_partition_reassignments(state, [(("orders", 0), (2,))]))
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(1)
    known = cluster.partition("orders")
    assert (known.replicas, known.isr, known.leader) == ((2, 1), (2,), 2), "elected uncleanly, and moving on"
    cluster.heartbeat(2, offline_log_dirs=(directory(2, 1),))
    epoch, places = cluster.image.cluster.brokers[2].epoch, {directory(2, 1): [(cluster.topic_id("orders"), 0)]}
    cluster.run(lambda state: assign_replicas_to_dirs(state, 2, epoch, places))
    known = cluster.partition("orders")
    assert (known.replicas, known.isr, known.leader) == ((2,), (2,), -1), "Kafka's controller has 1 lead"


def test_an_unregistered_broker_loses_its_leaderships() -> None:
    cluster = without_elr()
    cluster.start(1, 2)
    cluster.assigned("orders", (1, 2))
    epoch = cluster.image.cluster.brokers[1].epoch
    cluster.run(lambda state: unregister_broker(state, 1))
    assert cluster.added[-1] == UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch)
    assert cluster.partition("orders").leader == 2
    assert 1 not in cluster.image.cluster.brokers
    with pytest.raises(ControllerApiError) as refused:
        cluster.run(lambda state: unregister_broker(state, 1))
    assert refused.value.error is ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize("clean", [True, False])
def test_only_a_clean_shutdown_keeps_a_replica_eligible(clean: bool) -> None:
    cluster = ControlledCluster()
    cluster.start(1, 2)
    cluster.assigned("orders", (1, 2), configs={"min.insync.replicas": "2"})
    cluster.heartbeat(1, want_fence=True)
    assert cluster.partition("orders").elr == (1,)
    epoch = cluster.image.cluster.brokers[1].epoch
    cluster.clock.advance(10_000)
    cluster.register(1, process=1, clean=epoch if clean else -1)
    assert cluster.partition("orders").elr == ((1,) if clean else ())
    assert isinstance(cluster.added[-1], RegisterBrokerRecord)
