"""Changes of feature levels. Source: org.apache.kafka.controller.FeatureControlManager of Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ConfigRecord, FeatureLevelRecord
from kraftlake.records.metadata_version import MetadataVersion, from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion

METADATA_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""The levels of metadata.version that added records or fields; a downgrade below such a level would lose them."""


class UpgradeType(Enum):
    """The allowed direction of a change (FeatureUpdate.UpgradeType)."""

    UNKNOWN = 0
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
    if update.upgrade_type is UpgradeType.UNKNOWN:
        raise _invalid(name, update, "that is asked for as none of an upgrade, a safe and an unsafe downgrade")
    if update.level < 0:
        raise _invalid(name, update, "a level can't be below 0")
    own = state.config.node_id, SUPPORTED.get(name, VersionRange(0, 0))
    reason = next(unsupporting_nodes(state.image, name, update.level, own, state.config.quorum_node_ids), None)
    if reason is not None:
        raise _invalid(name, update, str(reason))
    if update.level < current and update.upgrade_type is UpgradeType.UPGRADE:
        raise _invalid(name, update, f"it is {current}, and a downgrade must be asked for as a safe or unsafe one")
    if update.level > current and update.upgrade_type is not UpgradeType.UPGRADE:
        raise _invalid(name, update, f"it is {current}, so that is no downgrade")
    if name == METADATA_VERSION:
        since = lossy_downgrade(current, update.level)
        if since is not None:
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


def lossy_downgrade(current: int, level: int) -> MetadataVersion | None:
    """The newest metadata.version whose records a downgrade to a level might lose; None for none."""
    lost = [change for change in METADATA_CHANGES if level < change <= current]
    return from_feature_level(max(lost)) if lost else None


def _invalid(name: str, update: FeatureUpdate, reason: str) -> ControllerApiError:
    return ControllerApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{name} can't become {update.level}: {reason}.")


@attrs.frozen
class Unsupporting:
    """A node that does not support a level: `kind` is `broker` or `controller`, `supported` None for unknown levels."""

    kind: str
    id: int
    supported: VersionRange | None

    def __str__(self) -> str:
        """`broker 3 supports 7 to 25`."""
        who = f"{self.kind} {self.id}"
        if self.supported is None:
            return f"{who} has not registered, so its support is unknown"
        if not self.supported.max:
            return f"{who} does not support it"
        return f"{who} supports {self.supported.min} to {self.supported.max}"


def unsupporting_nodes(
    image: MetadataImage, name: str, level: int, own: tuple[int, VersionRange | None], quorum: Iterable[int]
) -> Iterator[Unsupporting]:
    """Yield the nodes that keep a feature from a level: the active controller, brokers, other controllers of a quorum.

    `own` is the active controller with what it supports, None where that is not known and assumed. Fenced brokers and
    controllers that are no voters count as well. Controllers register from metadata.version 3.7 on.
    """
    disabled, (own_id, own_range) = VersionRange(0, 0), own
    nodes = [("controller", own_id, own_range)] if own_range is not None else []
    brokers, controllers = image.cluster.brokers, image.cluster.controllers
    nodes += [("broker", id_, brokers[id_].supported_features.get(name, disabled)) for id_ in sorted(brokers)]
    version = image.features.metadata_version
    registers = version is not None and version.is_controller_registration_supported
    others = [id_ for id_ in sorted(controllers) if id_ != own_id] if registers else []
    nodes += [("controller", id_, controllers[id_].supported_features.get(name, disabled)) for id_ in others]
    for kind, id_, supported in nodes:
        if not supported.min <= level <= supported.max:
            yield Unsupporting(kind, id_, supported)
    for id_ in quorum if registers else ():
        if id_ != own_id and id_ not in controllers:
            yield Unsupporting("controller", id_, None)


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
