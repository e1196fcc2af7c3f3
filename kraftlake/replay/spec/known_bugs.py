"""The bugs of Kafka that a violation may come from."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.records.metadata_version import MetadataVersion, from_feature_level


@attrs.frozen(kw_only=True)
class KnownBug:
    """A bug of Kafka: `name` is its ticket, or the method that has it where there is none; `words` are its effect.

    `since` is the first release that has it, `mended` the first that does not, None while Kafka 4.4 has it. `until` is
    the lowest metadata.version that no release with the bug knows: a log at that level does not show it. `change` is
    the pull request that mended it, None for none; `properties` are the ones violated.
    """

    name: str
    words: str
    since: str
    properties: tuple[str, ...]
    mended: str | None = None
    until: MetadataVersion | None = None
    change: str | None = None

    def __str__(self) -> str:
        """`KAFKA-19522: the last known leader is elected although it is fenced`."""
        return f"{self.name}: {self.words}"

    def shows_at(self, level: int) -> bool:
        """Whether a release that has the bug may write at a level of metadata.version."""
        return self.until is None or level < self.until.level


LAST_KNOWN_LEADER_FENCED: Final = KnownBug(
    name="KAFKA-19522",
    words="the last known leader is elected although it is fenced",
    since="4.0.0",
    mended="4.1.0",
    until=from_feature_level(26),
    change="apache/kafka#20200",
    properties=("leader_in_service", "isr_joins_in_service", "isr_in_service"),
)
ELR_KEEPS_REMOVED_REPLICA: Final = KnownBug(
    name="PartitionChangeBuilder.maybePopulateTargetElr",
    words="a replica that the end of a reassignment removes stays in the ELR while the ISR is below the minimum",
    since="4.0.0",
    properties=("elr_among_replicas",),
)
UNFENCED_IN_SHUTDOWN: Final = KnownBug(
    name="ReplicationControlManager.handleBrokerUnfenced",
    words="a late heartbeat unfences a broker that has shut down, and it is elected where there is no leader",
    since="3.3.0",
    properties=("leader_in_service", "isr_joins_in_service", "isr_in_service"),
)
UNFENCED_WITH_LOST_DIRECTORY: Final = KnownBug(
    name="ReplicationControlManager.processBrokerHeartbeat",
    words="a heartbeat that unfences a broker, and reports a failed log directory, has it lead replicas there",
    since="3.7.0",
    properties=("leader_directory_online",),
)
REPLACED_REASSIGNMENT_ADDS: Final = KnownBug(
    name="ReplicationControlManager.changePartitionReassignment",
    words="a reassignment that adds no replica keeps the replicas that the one before it adds, also if it removes them",
    since="3.3.0",
    properties=("reassignment_among_replicas",),
)
NOBODY_LAST_KNOWN: Final = KnownBug(
    name="PartitionChangeBuilder.maybeUpdateLastKnownLeader",
    words="a partition without a leader gets -1 for its last known leader",
    since="4.0.0",
    properties=("last_known_leader",),
)
ELR_LOST_BY_DIRECTORIES: Final = KnownBug(
    name="apache/kafka#20716",
    words="an assignment of replicas to log directories deletes the ELR",
    since="4.0.0",
    mended="4.3.0",
    until=from_feature_level(30),
    change="apache/kafka#20716",
    properties=("elr_keeps_members",),
)
CANCELLED_TO_FENCED: Final = KnownBug(
    name="PartitionReassignmentRevert",
    words="the cancellation of a reassignment that leaves no ISR puts the first replica into it, even a fenced one",
    since="3.3.0",
    properties=("isr_joins_in_service",),
)
REMOVED_IS_ELECTED: Final = KnownBug(
    name="ReplicationControlManager.handleAssignReplicasToDirs",
    words="an assignment to a failed log directory, which ends a reassignment, elects a replica that the end removes",
    since="3.7.0",
    properties=("isr_among_replicas",),
)
EPOCH_OF_SAME_PROCESS: Final = KnownBug(
    name="KAFKA-16952",
    words="a process that registers again gets a new broker epoch",
    since="3.3.0",
    mended="3.9.0",
    until=from_feature_level(21),
    change="apache/kafka#16333",
    properties=("broker_epoch_is_offset",),
)

KNOWN_BUGS: Final = (
    EPOCH_OF_SAME_PROCESS,
    ELR_LOST_BY_DIRECTORIES,
    NOBODY_LAST_KNOWN,
    LAST_KNOWN_LEADER_FENCED,
    ELR_KEEPS_REMOVED_REPLICA,
    UNFENCED_IN_SHUTDOWN,
    UNFENCED_WITH_LOST_DIRECTORY,
    REPLACED_REASSIGNMENT_ADDS,
    CANCELLED_TO_FENCED,
    REMOVED_IS_ELECTED,
)
"""All of them; `traces.py` says how each shows."""
