"""Feature levels, registration of controllers, producer ids, and the bootstrap records of a cluster."""

from __future__ import annotations

import attrs
import pytest

from kraftlake.controller.cluster.controllers import (
    ControllerRegistrationRequest,
    register_controller,
    unregister_controller,
)
from kraftlake.controller.cluster.features import FeatureUpdate, UpgradeType, update_features
from kraftlake.controller.cluster.producer_ids import allocate_producer_ids
from kraftlake.controller.cluster.supported_features import version_of_release
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ConfigRecord, ControllerEndpoint, ControllerFeature, FeatureLevelRecord
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.runtime.errors import UsageError
from tests.controller.controlled_cluster import ControlledCluster, incarnation

ELR = "eligible.leader.replicas.version"


def update(cluster: ControlledCluster, name: str, level: int, kind: UpgradeType = UpgradeType.UPGRADE) -> ErrorCode:
    return cluster.run(lambda state: update_features(state, {name: FeatureUpdate(level, kind)})).error


def test_metadata_version_is_raised_and_lowered_where_nothing_is_lost() -> None:
    cluster = ControlledCluster(version=from_feature_level(27))
    assert update(cluster, "metadata.version", 29) is ErrorCode.NONE
    assert cluster.added == [FeatureLevelRecord(name="metadata.version", feature_level=29)]
    assert update(cluster, "metadata.version", 27) is ErrorCode.INVALID_UPDATE_VERSION, (
        "a downgrade is asked for as one"
    )
    assert update(cluster, "metadata.version", 27, UpgradeType.SAFE_DOWNGRADE) is ErrorCode.NONE
    assert update(cluster, "metadata.version", 22, UpgradeType.UNSAFE_DOWNGRADE) is ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, "metadata.version", 28, UpgradeType.SAFE_DOWNGRADE) is ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize(
    ("name", "level"), [("metadata.version", 34), ("group.version", 2), ("nonsense", 1), ("nonsense", 0), (ELR, -1)]
)
def test_an_unsupported_level_is_refused(name: str, level: int) -> None:
    assert update(ControlledCluster(), name, level) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_level_that_a_broker_does_not_support_is_refused() -> None:
    cluster = ControlledCluster(version=from_feature_level(27))
    cluster.start(1)
    old = attrs.evolve(
        cluster.state.image.cluster.brokers[1],
        supported_features=cluster.state.image.cluster.brokers[1].supported_features.remove("share.version"),
    )
    brokers = cluster.state.image.cluster.brokers.insert(1, old)
    cluster.state.image = attrs.evolve(
        cluster.state.image, cluster=attrs.evolve(cluster.state.image.cluster, brokers=brokers)
    )
    assert update(cluster, "share.version", 1) is ErrorCode.INVALID_UPDATE_VERSION


def test_eligible_leader_replicas_need_their_metadata_version_and_bring_their_minimum() -> None:
    assert update(ControlledCluster(version=from_feature_level(22)), ELR, 1) is ErrorCode.INVALID_UPDATE_VERSION
    cluster = ControlledCluster(features={ELR: 0})
    assert update(cluster, ELR, 1) is ErrorCode.NONE
    assert cluster.added == [
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        FeatureLevelRecord(name=ELR, feature_level=1),
    ]


def test_all_features_of_a_request_change_or_none() -> None:
    cluster = ControlledCluster()
    updates = {"share.version": FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE), "group.version": FeatureUpdate(7)}
    assert cluster.run(lambda state: update_features(state, updates)).error is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.added == []


def test_a_feature_change_needs_the_registration_of_every_controller() -> None:
    cluster = ControlledCluster(version=from_feature_level(27), quorum_node_ids=(100, 101))
    assert update(cluster, "metadata.version", 28) is ErrorCode.INVALID_UPDATE_VERSION, "101 has not registered"
    features = (ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=28),)
    request = ControllerRegistrationRequest(controller_id=101, incarnation_id=incarnation(101), features=features)
    cluster.run(lambda state: register_controller(state, request))
    assert update(cluster, "metadata.version", 29) is ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, "metadata.version", 28) is ErrorCode.NONE


def test_a_controller_with_a_listener_of_an_unknown_security_protocol_is_refused() -> None:
    cluster = ControlledCluster()
    listener = ControllerEndpoint(name="s", host="h", port=1, security_protocol=4)
    request = ControllerRegistrationRequest(controller_id=101, incarnation_id=incarnation(101), listeners=(listener,))
    with pytest.raises(
        ControllerApiError,
        match="The registration is refused: controller 101 registers listener 's' with the unknown security protocol 4",
    ) as refused:
        cluster.run(lambda state: register_controller(state, request))
    assert refused.value.error is ErrorCode.INVALID_REQUEST
    assert not cluster.image.cluster.controllers


@pytest.mark.parametrize(
    ("level", "controller", "error"),
    [
        (33, 100, ErrorCode.INVALID_REQUEST),
        (33, 102, ErrorCode.CONTROLLER_ID_NOT_REGISTERED),
        (32, 101, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_controller_that_can_not_be_unregistered(level: int, controller: int, error: ErrorCode) -> None:
    cluster = ControlledCluster(version=from_feature_level(level))
    request = ControllerRegistrationRequest(controller_id=101, incarnation_id=incarnation(101))
    cluster.run(lambda state: register_controller(state, request))
    with pytest.raises(ControllerApiError) as refused:
        cluster.run(lambda state: unregister_controller(state, controller))
    assert refused.value.error is error


def test_a_controller_is_unregistered() -> None:
    cluster = ControlledCluster()
    request = ControllerRegistrationRequest(controller_id=101, incarnation_id=incarnation(101))
    cluster.run(lambda state: register_controller(state, request))
    cluster.run(lambda state: unregister_controller(state, 101))
    assert not cluster.image.cluster.controllers


def test_producer_ids_are_allocated_in_blocks_to_brokers_with_a_valid_epoch() -> None:
    cluster = ControlledCluster()
    cluster.start(1)
    epoch = cluster.image.cluster.brokers[1].epoch
    firsts = [cluster.run(lambda state: allocate_producer_ids(state, 1, epoch)).first for _ in range(3)]
    assert firsts == [0, 1000, 2000]
    with pytest.raises(ControllerApiError) as refused:
        cluster.run(lambda state: allocate_producer_ids(state, 1, epoch + 1))
    assert refused.value.error is ErrorCode.STALE_BROKER_EPOCH


def test_the_bootstrap_records_have_the_levels_of_the_release() -> None:
    begins = BootstrapMetadata.of(version_of_release("4.0"), {"group.version": 0})
    assert {record.message.name: record.message.feature_level for record in begins.records} == {  # type: ignore[union-attr]
        "metadata.version": 25, "transaction.version": 2,
    }  # fmt: skip
    for text, features in (("9.9", {}), ("3.0", {}), ("4.0", {"nonsense": 1}), ("4.0", {"group.version": 2})):
        with pytest.raises(UsageError):
            BootstrapMetadata.of(version_of_release(text), features)
    with pytest.raises(UsageError):
        BootstrapMetadata.of(version_of_release("3.9"), {ELR: 1})
