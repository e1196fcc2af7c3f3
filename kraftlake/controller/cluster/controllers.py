"""Registration of controllers, and their unregistration (KIP-919)."""

from __future__ import annotations

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
    UnregisterControllerRecord,
)
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError


@attrs.frozen(kw_only=True)
class ControllerRegistrationRequest:
    """A controller process."""

    controller_id: int
    incarnation_id: Uuid
    listeners: tuple[ControllerEndpoint, ...] = ()
    features: tuple[ControllerFeature, ...] = ()


def register_controller(state: ControllerState, request: ControllerRegistrationRequest) -> ControllerResult[None]:
    """Register a controller, in place of its last incarnation.

    Raises ControllerApiError for a listener of an unknown security protocol, and before controllers register.
    """
    if not state.metadata_version.is_controller_registration_supported:
        raise ControllerApiError(
            ErrorCode.UNSUPPORTED_VERSION, "Controllers register from metadata.version 3.7-IV0 on."
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=request.listeners,
        features=request.features,
    )
    try:
        ControllerRegistration.from_record(record)
    except ReplayError as fault:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"The registration is refused: {fault}") from fault
    return ControllerResult((ApiMessageAndVersion(record, 0),), None, atomic=True)


def unregister_controller(state: ControllerState, controller_id: int) -> ControllerResult[None]:
    """Unregister a controller; the active controller can't unregister itself."""
    if controller_id == state.config.node_id:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, "The active controller can't unregister itself.")
    if not state.metadata_version.is_controller_unregistration_supported:
        raise ControllerApiError(
            ErrorCode.UNSUPPORTED_VERSION, "Controllers are unregistered from metadata.version 4.4-IV2 on."
        )
    if controller_id not in state.image.cluster.controllers:
        raise ControllerApiError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED, f"Controller {controller_id} is not registered."
        )
    record = UnregisterControllerRecord(controller_id=controller_id)
    return ControllerResult((ApiMessageAndVersion(record, 0),), None, atomic=True)
