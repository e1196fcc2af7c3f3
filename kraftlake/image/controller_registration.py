"""The registration of a controller."""

from __future__ import annotations

import attrs
from rpds import HashTrieMap

from kraftlake.image.endpoint import (
    Endpoint,
    VersionRange,
    end_points_of,
    feature_levels_of,
    features_of,
    listeners_of,
)
from kraftlake.image.kafka_names import SECURITY_PROTOCOLS
from kraftlake.records.metadata_records import ControllerEndpoint, ControllerFeature, RegisterControllerRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError


@attrs.frozen(kw_only=True)
class ControllerRegistration:
    """One incarnation of a controller (KIP-919). Source: org.apache.kafka.metadata.ControllerRegistration."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool = False
    listeners: HashTrieMap[str, Endpoint]
    supported_features: HashTrieMap[str, VersionRange]

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerRegistration:
        """The registration in a record; ReplayError if a listener has an unknown security protocol."""
        for end_point in record.end_points:
            if end_point.security_protocol not in SECURITY_PROTOCOLS:
                raise ReplayError(
                    f"controller {record.controller_id} registers listener {end_point.name!r} with the unknown "
                    f"security protocol {end_point.security_protocol}."
                )
        return cls(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            listeners=listeners_of(record.end_points),
            supported_features=features_of(record.features),
        )

    def to_record(self) -> ApiMessageAndVersion:
        """The RegisterControllerRecord with this state."""
        record = RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=end_points_of(self.listeners, ControllerEndpoint),
            features=feature_levels_of(self.supported_features, ControllerFeature),
        )
        return ApiMessageAndVersion(record, 0)
