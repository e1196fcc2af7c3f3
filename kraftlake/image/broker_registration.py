"""The registration of a broker."""

from __future__ import annotations

import attrs
from rpds import HashTrieMap

from kraftlake.image.common_fields import common_fields
from kraftlake.image.endpoint import (
    Endpoint,
    VersionRange,
    end_points_of,
    feature_levels_of,
    features_of,
    listeners_of,
)
from kraftlake.image.topics.directory_id import is_online
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError


def _sorted(directories: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
    return tuple(sorted(directories, key=Uuid.sort_key))


@attrs.frozen(kw_only=True)
class BrokerRegistration:
    """One incarnation of a broker: `epoch` is the offset of its registration.

    `directories` are the ids of the online log directories, sorted; `cordoned_directories` are those that get no new
    partitions, None if the broker never reported any. Source: org.apache.kafka.metadata.BrokerRegistration.
    """

    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: HashTrieMap[str, Endpoint]
    supported_features: HashTrieMap[str, VersionRange]
    rack: str | None = None
    fenced: bool
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    directories: tuple[Uuid, ...] = attrs.field(default=(), converter=_sorted)
    cordoned_directories: tuple[Uuid, ...] | None = None

    def has_online_dir(self, directory: Uuid) -> bool:
        """Whether the broker can serve a replica in `directory`, which may be a reserved id."""
        return is_online(directory, self.directories)

    @property
    def has_uncordoned_dirs(self) -> bool:
        """Whether new replicas may be placed on the broker."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return not set(self.directories) <= set(self.cordoned_directories)

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerRegistration:
        """The registration in a record; ReplayError if a listener has no name."""
        if any(not end_point.name for end_point in record.end_points):
            raise ReplayError(f"broker {record.broker_id} registers a listener without a name.")
        return cls(
            **common_fields(record, cls),
            id=record.broker_id,
            epoch=record.broker_epoch,
            listeners=listeners_of(record.end_points),
            supported_features=features_of(record.features),
            directories=record.log_dirs,
            cordoned_directories=record.cordoned_log_dirs,
        )

    def to_record(self, options: ImageWriterOptions) -> ApiMessageAndVersion:
        """The RegisterBrokerRecord with this state; state that the record can't hold goes to the loss handler."""
        version = options.metadata_version
        migrating = self.is_migrating_zk_broker
        if migrating and not version.is_migration_supported:
            options.handle_loss("the migration state of one or more ZooKeeper brokers")
            migrating = False
        directories = self.directories
        if directories and not version.is_directory_assignment_supported:
            options.handle_loss("the online log directories of one or more brokers")
            directories = ()
        cordoned = self.cordoned_directories
        if cordoned is not None and not version.is_cordoned_log_dirs_supported:
            options.handle_loss("the cordoned log directories of one or more brokers")
            cordoned = None
        record = RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=migrating,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=end_points_of(self.listeners, BrokerEndpoint),
            features=feature_levels_of(self.supported_features, BrokerFeature),
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=directories,
            cordoned_log_dirs=cordoned,
        )
        return ApiMessageAndVersion(record, version.register_broker_record_version)
