"""Brokers: registration, heartbeats, fencing, controlled shutdown, failed directories, unregistration.

Source: org.apache.kafka.controller.ClusterControlManager and ReplicationControlManager of Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.controller.cluster.broker_registration import check_registration
from kraftlake.controller.cluster.heartbeats import BrokerControlState
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.leader_and_isr import leader_and_isr_updates
from kraftlake.controller.replication.partitions import (
    in_directory,
    leads_any,
    with_broker_in_elr,
    with_broker_in_isr,
    without_leader,
)
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest, BrokerRegistrationRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

FENCE = 1
UNFENCE = -1
IN_CONTROLLED_SHUTDOWN = 1


@attrs.frozen(kw_only=True)
class BrokerRegistrationReply:
    """The broker epoch, which the broker sends with its requests."""

    broker_epoch: int


@attrs.frozen(kw_only=True)
class BrokerHeartbeatReply:
    """The reply to a heartbeat."""

    is_caught_up: bool
    is_fenced: bool
    in_controlled_shutdown: bool
    should_shut_down: bool


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest
) -> ControllerResult[BrokerRegistrationReply]:
    """Register a broker process; a new incarnation replaces the old one, whose replicas leave their ISRs.

    The same incarnation may register again with other values, under the same epoch. A request is refused if it has
    another cluster's id, the id of another live process, unsupported feature levels, or directories that are reserved,
    repeated or registered by another broker.
    """
    existing = state.registration(request.broker_id)
    features = check_registration(state, request)
    records: list[ApiMessageAndVersion] = []
    is_new = existing is None or existing.incarnation_id != request.incarnation_id
    if is_new:
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += _shut_down(state, request.broker_id, clean=clean)
    with_directories = state.metadata_version.is_directory_assignment_supported
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=state.next_offset if existing is None or is_new else existing.epoch,
        end_points=request.listeners,
        features=features,
        rack=request.rack,
        fenced=True if existing is None or is_new else existing.fenced,
        in_controlled_shutdown=False if existing is None or is_new else existing.in_controlled_shutdown,
        log_dirs=request.log_dirs if with_directories else (),
    )
    records.append(ApiMessageAndVersion(record, state.metadata_version.register_broker_record_version))
    if is_new:
        state.heartbeats.remove(request.broker_id)
    state.heartbeats.register(request.broker_id, fenced=record.fenced)
    return ControllerResult(records, BrokerRegistrationReply(broker_epoch=record.broker_epoch))


def _shut_down(state: ControllerState, broker_id: int, *, clean: bool) -> list[ApiMessageAndVersion]:
    topics = state.image.topics
    if clean or not state.elr_enabled:
        return leader_and_isr_updates(state, with_broker_in_isr(topics, broker_id), remove=broker_id)
    return [
        *leader_and_isr_updates(state, with_broker_in_isr(topics, broker_id), unclean_shutdown=broker_id),
        *leader_and_isr_updates(state, with_broker_in_elr(topics, broker_id), unclean_shutdown=broker_id),
    ]


def unregister_broker(state: ControllerState, broker_id: int) -> ControllerResult[None]:
    """Unregister a broker; its replicas leave all ISRs and sets of eligible leader replicas."""
    registration = state.registration(broker_id)
    if registration is None:
        raise ControllerApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    topics = state.image.topics
    records = [
        *leader_and_isr_updates(state, with_broker_in_isr(topics, broker_id), remove=broker_id),
        *leader_and_isr_updates(state, with_broker_in_elr(topics, broker_id), remove=broker_id),
    ]
    records.append(
        ApiMessageAndVersion(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=registration.epoch), 0)
    )
    return ControllerResult(records, None)


def process_heartbeat(
    state: ControllerState, request: BrokerHeartbeatRequest
) -> ControllerResult[BrokerHeartbeatReply]:
    """Note that a broker is alive, and change its state (see `BrokerHeartbeats.next_state`).

    A broker that begins a controlled shutdown loses its leaderships in the same batch.
    """
    broker_id, epoch = request.broker_id, request.broker_epoch
    state.heartbeats.touch_contact(broker_id, epoch, state.now_ns)
    registered_at = state.registration_offsets.get(broker_id)
    if registered_at is None:
        raise ControllerApiError(
            ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} sends heartbeats but never registered."
        )
    registration = state.check_broker_epoch(broker_id, epoch)
    current, then = state.heartbeats.next_state(
        broker_id,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        metadata_offset=request.current_metadata_offset,
        registration_offset=registered_at,
        has_leaderships=lambda: leads_any(state.image.topics, broker_id),
    )
    records = [] if current is then else _change_state(state, registration, then)
    state.heartbeats.touch(broker_id, fenced=then.fenced, metadata_offset=request.current_metadata_offset)
    if state.metadata_version.is_directory_assignment_supported:
        records += _directories_offline(state, registration, request.offline_log_dirs)
    if state.metadata_version.is_cordoned_log_dirs_supported:
        records += _directories_cordoned(registration, request.cordoned_log_dirs)
    if then is BrokerControlState.CONTROLLED_SHUTDOWN:
        last_offset = state.next_offset + len(records) - 1
        state.heartbeats.begin_controlled_shutdown(broker_id, last_offset)
    reply = BrokerHeartbeatReply(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=then.fenced,
        in_controlled_shutdown=then is BrokerControlState.CONTROLLED_SHUTDOWN,
        should_shut_down=then is BrokerControlState.SHUTDOWN_NOW,
    )
    return ControllerResult(records, reply)


def _change_state(
    state: ControllerState, broker: BrokerRegistration, then: BrokerControlState
) -> list[ApiMessageAndVersion]:
    if then is BrokerControlState.UNFENCED:
        change = _change(broker, 0, fenced=UNFENCE)
        return [change, *leader_and_isr_updates(state, without_leader(state.image.topics), add=broker.id)]
    if then is not BrokerControlState.CONTROLLED_SHUTDOWN:
        return _fence(state, broker)
    records = []
    if not broker.in_controlled_shutdown:
        records.append(_change(broker, 1, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN))
    found = with_broker_in_isr(state.image.topics, broker.id)
    return [*records, *leader_and_isr_updates(state, found, remove=broker.id)]


def _fence(state: ControllerState, broker: BrokerRegistration) -> list[ApiMessageAndVersion]:
    """Return the records that remove a broker from all ISRs and leaderships, and fence it."""
    updates = leader_and_isr_updates(state, with_broker_in_isr(state.image.topics, broker.id), remove=broker.id)
    return [*updates, _change(broker, 0, fenced=FENCE)]


def _directories_offline(
    state: ControllerState, broker: BrokerRegistration, offline: tuple[Uuid, ...]
) -> list[ApiMessageAndVersion]:
    failed = [directory for directory in broker.directories if directory in offline]
    if not failed:
        return []
    records = []
    for directory in failed:
        found = in_directory(state.image.topics, broker.id, directory)
        records += leader_and_isr_updates(state, found, remove=broker.id)
    online = tuple(directory for directory in broker.directories if directory not in offline)
    return [*records, _change(broker, 2, log_dirs=online)]


def _directories_cordoned(broker: BrokerRegistration, cordoned: tuple[Uuid, ...] | None) -> list[ApiMessageAndVersion]:
    before = broker.cordoned_directories
    if cordoned is None or (before is not None and set(before) == set(cordoned)):
        return []
    return [_change(broker, 3, cordoned_log_dirs=cordoned)]


def _change(broker: BrokerRegistration, version: int, **changes: Any) -> ApiMessageAndVersion:
    """Return a BrokerRegistrationChangeRecord, in the lowest version that can hold the change, as in Kafka."""
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, **changes)
    return ApiMessageAndVersion(record, version)


def maybe_fence_stale_broker(state: ControllerState) -> ControllerResult[bool]:
    """Fence one broker whose session has expired; the response is True if the next check is due at once."""
    expired = state.heartbeats.remove_expired(state.now_ns)
    if expired is None:
        return ControllerResult((), False)
    broker_id, epoch = expired
    registration = state.registration(broker_id)
    if registration is None:
        state.heartbeats.remove(broker_id)
        return ControllerResult((), True)
    if registration.epoch != epoch:
        return ControllerResult((), True)
    records = _fence(state, registration)
    state.heartbeats.fence(broker_id)
    return ControllerResult(records, True)
