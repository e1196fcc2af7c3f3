"""The levels of the feature metadata.version: the records that a cluster may write, and their versions.

Source: org.apache.kafka.server.common.MetadataVersion of Kafka 4.4; levels 1 to 6 from Kafka 3.9, since logs that began
with them are still readable.
"""

from __future__ import annotations

from functools import cache

import attrs

from kraftlake.runtime.errors import ReplayError

_NAMES = (
    "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1",
    "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0",
    "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
    "4.4-IV0", "4.4-IV1", "4.4-IV2", "4.5-IV0",
)  # fmt: skip


class _From:
    """An attribute of MetadataVersion that is true from a level on."""

    def __init__(self, level: int) -> None:
        self._level = level

    def __get__(self, version: MetadataVersion, _: type) -> bool:
        return version.level >= self._level


@attrs.frozen(order=True)
class MetadataVersion:
    """A level of metadata.version and its name; ordered by level."""

    level: int
    name: str = attrs.field(order=False)

    def __str__(self) -> str:
        return self.name

    is_in_controlled_shutdown_state_supported = _From(7)
    """Whether broker registrations state that a broker is shutting down (3.3-IV3)."""

    is_migration_supported = _From(8)
    """Whether migration from ZooKeeper is possible (3.4-IV0)."""

    is_scram_supported = _From(11)
    """Whether SCRAM credentials are supported (3.5-IV2)."""

    @property
    def is_leader_epoch_bump_required_on_isr_shrink(self) -> bool:
        """Whether a smaller ISR raises the leader epoch (before 3.6-IV0)."""
        return self.level < 12

    is_metadata_transaction_supported = _From(13)
    """Whether metadata transactions are supported (3.6-IV1)."""

    is_delegation_token_supported = _From(14)
    """Whether delegation tokens are supported (3.6-IV2)."""

    is_controller_registration_supported = _From(15)
    """Whether RegisterControllerRecord exists (3.7-IV0)."""

    is_directory_assignment_supported = _From(17)
    """Whether replicas are assigned to log directories (3.7-IV2)."""

    is_elr_supported = _From(23)
    """Whether eligible leader replicas are supported (4.0-IV1)."""

    is_cordoned_log_dirs_supported = _From(30)
    """Whether log directories can be cordoned (4.3-IV0)."""

    is_cidr_acl_supported = _From(32)
    """Whether the host of an ACL may be a CIDR range (4.4-IV1)."""

    is_controller_unregistration_supported = _From(33)
    """Whether UnregisterControllerRecord exists (4.4-IV2)."""

    @property
    def register_broker_record_version(self) -> int:
        """The version of new RegisterBrokerRecords."""
        if self.is_cordoned_log_dirs_supported:
            return 4
        if self.is_directory_assignment_supported:
            return 3
        if self.is_migration_supported:
            return 2
        return 1 if self.is_in_controlled_shutdown_state_supported else 0

    @property
    def broker_registration_change_record_version(self) -> int:
        """The version of new BrokerRegistrationChangeRecords."""
        if self.is_cordoned_log_dirs_supported:
            return 3
        if self.is_directory_assignment_supported:
            return 2
        return 1 if self.is_in_controlled_shutdown_state_supported else 0

    @property
    def partition_change_record_version(self) -> int:
        """The version of new PartitionChangeRecords."""
        return self.partition_record_version

    @property
    def partition_record_version(self) -> int:
        """The version of new PartitionRecords."""
        if self.is_elr_supported:
            return 2
        return 1 if self.is_directory_assignment_supported else 0


ALL: tuple[MetadataVersion, ...] = tuple(MetadataVersion(level, name) for level, name in enumerate(_NAMES, start=1))
MINIMUM = ALL[0]
MINIMUM_OF_KAFKA_4 = ALL[6]
"""3.3-IV3: Kafka 4 loads no log at a lower level."""
LATEST = ALL[-1]
LATEST_PRODUCTION = ALL[32]
"""4.4-IV2: the level that Kafka 4.4 sets on a new cluster."""


@cache
def from_feature_level(level: int) -> MetadataVersion:
    """Return the MetadataVersion of a level of the feature; raises ReplayError for an unknown level."""
    if not 1 <= level <= len(ALL):
        raise ReplayError(
            f"metadata.version {level} is not known; this release knows 1 ({MINIMUM}) to {len(ALL)} ({LATEST})."
        )
    return ALL[level - 1]
