"""The registration request of a broker, and its validation."""

from __future__ import annotations

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.state import ControllerState
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.image.topics.directory_id import LOST, MIGRATING, UNASSIGNED
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import BrokerFeature
from kraftlake.records.uuid import Uuid

RESERVED_DIRECTORIES = frozenset(Uuid(number.to_bytes(16, "big")) for number in range(100))
"""Ids that are never directory ids."""
assert {MIGRATING, UNASSIGNED, LOST} <= RESERVED_DIRECTORIES


def check_registration(state: ControllerState, request: BrokerRegistrationRequest) -> tuple[BrokerFeature, ...]:
    """Return the features to record; raises ControllerApiError for an invalid request."""
    if request.cluster_id != state.config.cluster_id:
        raise ControllerApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"The broker belongs to cluster {request.cluster_id}; this one is {state.config.cluster_id}.",
        )
    existing = state.registration(request.broker_id)
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and state.heartbeats.has_valid_session(request.broker_id, existing.epoch, state.now_ns)
    ):
        raise ControllerApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another process is registered as broker {request.broker_id}, and its session is not over yet.",
        )
    if request.is_migrating_zk_broker:
        raise ControllerApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, "ZooKeeper brokers can't register.")
    if state.metadata_version.is_directory_assignment_supported:
        _check_directories(state, request)
    return _checked_features(state, request)


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    problem = None
    if not request.log_dirs:
        problem = "it names no log directory"
    elif RESERVED_DIRECTORIES & set(request.log_dirs):
        problem = "it names a directory id that is reserved"
    elif len(set(request.log_dirs)) < len(request.log_dirs):
        problem = "it names a directory twice"
    else:
        for broker_id, other in sorted(state.image.cluster.brokers.items()):
            taken = set(other.directories) & set(request.log_dirs)
            if taken and broker_id != request.broker_id:
                problem = f"broker {broker_id} has registered directory {min(taken)!s} already"
                break
    if problem is not None:
        raise ControllerApiError(
            ErrorCode.INVALID_REGISTRATION, f"Broker {request.broker_id} can't register: {problem}."
        )


def _checked_features(state: ControllerState, request: BrokerRegistrationRequest) -> tuple[BrokerFeature, ...]:
    """Check that the broker supports every finalized level; a feature without an entry is not supported."""
    finalized = state.finalized_levels
    named = {feature.name for feature in request.features}
    for feature in request.features:
        _check_level(feature, finalized.get(feature.name, 0))
    if METADATA_VERSION not in named:
        raise ControllerApiError(
            ErrorCode.INVALID_REGISTRATION,
            f"Broker {request.broker_id} does not say which {METADATA_VERSION} it supports.",
        )
    for name, level in finalized.items():
        if level and name not in named:
            _check_level(BrokerFeature(name=name, min_supported_version=0, max_supported_version=0), level)
    return request.features


def _check_level(feature: BrokerFeature, level: int) -> None:
    if not feature.min_supported_version <= level <= feature.max_supported_version:
        raise ControllerApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The broker can't register: it supports {feature.name} {feature.min_supported_version} to "
            f"{feature.max_supported_version}, and the cluster is at {level}.",
        )
