"""Changes of feature levels. Source: org.apache.kafka.controller.FeatureControlManager of Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import attrs

from kraftlake.controller.cluster.supported_features import FEATURES, SUPPORTED, missing_need
from kraftlake.controller.configs.config_schema import static_topic_config
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.configurations_image import BROKER_RESOURCE, ConfigResource
from kraftlake.image.endpoint import VersionRange
from kraftlake.image.features_image import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ConfigRecord, FeatureLevelRecord
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion

METADATA_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""The levels of metadata.version that added records or fields; a downgrade below such a level would lose them."""


class UpgradeType(Enum):
    """The allowed direction of a change (FeatureUpdate.UpgradeType)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@attrs.frozen
class FeatureUpdate:
    """The new level of a feature."""

    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


def update_features(
    state: ControllerState, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False
) -> ControllerResult[ApiError]:
    """Change all of the feature levels or none: every node must support them, and a downgrade must lose no metadata.

    Eligible leader replicas need one `min.insync.replicas` for the whole cluster: a missing one is set, and the values
    of single brokers are removed.
    """
    proposed = state.finalized_levels | {name: update.level for name, update in updates.items()}
    records: list[ApiMessageAndVersion] = []
    try:
        for name, update in updates.items():
            records += _update(state, name, update, proposed)
    except ControllerApiError as refusal:
        return ControllerResult((), refusal.api_error)
    if validate_only:
        return ControllerResult((), ApiError.NONE)
    elr = updates.get(ELR_VERSION)
    if elr is not None and elr.level > 0:
        records = [*_elr_safety_records(state), *records]
    return ControllerResult(records, ApiError.NONE, atomic=True)


def _update(
    state: ControllerState, name: str, update: FeatureUpdate, proposed: Mapping[str, int]
) -> list[ApiMessageAndVersion]:
    current = state.finalized_levels.get(name, 0)
    if update.level < 0:
        raise _invalid(name, update, "a level can't be below 0")
    reason = next(_reasons_not_supported(state, name, update.level), None)
    if reason is not None:
        raise _invalid(name, update, reason)
    if update.level < current and update.upgrade_type is UpgradeType.UPGRADE:
        raise _invalid(name, update, f"it is {current}, and a downgrade must be asked for as a safe or unsafe one")
    if update.level > current and update.upgrade_type is not UpgradeType.UPGRADE:
        raise _invalid(name, update, f"it is {current}, so that is no downgrade")
    if name == METADATA_VERSION:
        lost = [level for level in METADATA_CHANGES if update.level < level <= current]
        if lost:
            since = from_feature_level(max(lost))
            raise _invalid(name, update, f"what {since} and later ones have written might be lost")
    elif name == KRAFT_VERSION:
        if update.level != current:
            raise _invalid(name, update, "the one voter of a lake has no use for another one")
        return []
    elif name not in FEATURES:
        raise _invalid(name, update, "there is no feature of that name")
    else:
        need = missing_need(name, update.level, proposed)
        if need is not None:
            raise _invalid(name, update, need)
    return [ApiMessageAndVersion(FeatureLevelRecord(name=name, feature_level=update.level), 0)]


def _invalid(name: str, update: FeatureUpdate, reason: str) -> ControllerApiError:
    return ControllerApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{name} can't become {update.level}: {reason}.")


def _reasons_not_supported(state: ControllerState, name: str, level: int) -> Iterator[str]:
    """Yield the nodes that do not support the level, in words: this controller, brokers, other controllers."""
    disabled = VersionRange(0, 0)
    yield from _unless_in(SUPPORTED.get(name, disabled), level, f"controller {state.config.node_id}")
    for broker_id, broker in sorted(state.image.cluster.brokers.items()):
        yield from _unless_in(broker.supported_features.get(name, disabled), level, f"broker {broker_id}")
    if not state.metadata_version.is_controller_registration_supported:
        return
    controllers = state.image.cluster.controllers
    for controller_id, controller in sorted(controllers.items()):
        if controller_id != state.config.node_id:
            features = controller.supported_features.get(name, disabled)
            yield from _unless_in(features, level, f"controller {controller_id}")
    for node_id in state.config.quorum_node_ids:
        if node_id != state.config.node_id and node_id not in controllers:
            yield f"controller {node_id} has not registered, so its support is unknown"


def _unless_in(supported: VersionRange, level: int, who: str) -> Iterator[str]:
    if not supported.min <= level <= supported.max:
        yield f"{who} supports {supported.min} to {supported.max}" if supported.max else f"{who} does not support it"


def _elr_safety_records(state: ControllerState) -> list[ApiMessageAndVersion]:
    records = []
    configs = state.image.configs
    if MIN_ISR not in configs.config_map(ConfigResource(BROKER_RESOURCE, "")):
        value = str(static_topic_config(state.config, MIN_ISR))
        records.append(_min_isr_record("", value))
    for resource, image in sorted(configs.resource_data.items()):
        if resource.type == BROKER_RESOURCE and resource.name and MIN_ISR in image.data:
            records.append(_min_isr_record(resource.name, None))
    return records


def _min_isr_record(broker: str, value: str | None) -> ApiMessageAndVersion:
    record = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_ISR, value=value)
    return ApiMessageAndVersion(record, 0)
