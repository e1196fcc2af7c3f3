"""The properties that a log must have by the specifications of Kafka, as far as its metadata alone can show them."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.records.metadata_version import MINIMUM_OF_KAFKA_4, MetadataVersion, from_feature_level

_SPEC_OF_KIP_966: Final = "kip_966_properties.tla"
_KAFKA_4: Final = from_feature_level(22)
_DIRECTORIES: Final = from_feature_level(17)
_ELR: Final = from_feature_level(23)


@attrs.frozen(kw_only=True)
class Property:
    """A property of a log: `meaning` says what holds, `source` where that is specified.

    `since` is the metadata.version from which on it is judged. `when` says where: of each record, or at the end of an
    operation of the controller. `with_elr`: only while eligible leader replicas are on.
    """

    name: str
    meaning: str
    source: str
    since: MetadataVersion = MINIMUM_OF_KAFKA_4
    when: str = "record"
    with_elr: bool = False


_OPERATION: Final = "operation"

PROPERTIES: Final = {
    each.name: each
    for each in (
        Property(
            name="replicas_distinct",
            meaning="a partition has replicas, and no broker twice among its replicas, ISR or ELR",
            source="PartitionRegistration; ReplicationControlManager.validateManualPartitionAssignment",
        ),
        Property(
            name="isr_among_replicas",
            meaning="the members of the ISR are replicas",
            source=f"KIP-966, ValidControllerIsrAndElr ({_SPEC_OF_KIP_966})",
        ),
        Property(
            name="elr_among_replicas",
            meaning="the members of the ELR are replicas",
            source=f"KIP-966, ValidControllerIsrAndElr ({_SPEC_OF_KIP_966})",
            with_elr=True,
        ),
        Property(
            name="elr_outside_isr",
            meaning="no member of the ELR is in the ISR",
            source=f"KIP-966, ValidControllerIsrAndElr ({_SPEC_OF_KIP_966})",
            with_elr=True,
        ),
        Property(
            name="elr_only_below_min_isr",
            meaning="the ELR is empty where the ISR has min.insync.replicas members",
            source=f"KIP-966, ValidControllerIsrAndElr ({_SPEC_OF_KIP_966})",
            with_elr=True,
        ),
        Property(
            name="elr_from_isr",
            meaning="a new member of the ELR has just left the ISR",
            source="KIP-966, UpdateElr (kip_966_functions.tla)",
            with_elr=True,
        ),
        Property(
            name="elr_keeps_members",
            meaning="below min.insync.replicas nobody leaves both ISR and ELR, but by a restart out of order or an "
            "unclean election",
            source="KIP-966, UpdateElr (kip_966_functions.tla)",
            with_elr=True,
        ),
        Property(
            name="isr_not_empty",
            meaning="the ISR is empty only with eligible leader replicas",
            source="KIP-966, Proposed Changes; PartitionChangeBuilder.build",
        ),
        Property(
            name="min_isr_recovery_quorum",
            meaning="a partition change that leaves no ISR and no ELR keeps the last known leader",
            source=f"KIP-966, MinIsrRecoveryQuorum ({_SPEC_OF_KIP_966}), of which Kafka keeps one replica",
            with_elr=True,
        ),
        Property(
            name="last_known_leader",
            meaning="the last known ELR has at most one member, a broker, and none while there is a leader",
            source="KIP-966, Balanced recovery; PartitionChangeBuilder.maybeUpdateLastKnownLeader",
            with_elr=True,
        ),
        Property(
            name="leader_in_isr",
            meaning="the leader is in the ISR",
            source="KIP-966, MaybeUpdatePartitionOnBrokerChange (kip_966_functions.tla)",
        ),
        Property(
            name="leader_change_is_clean",
            meaning="a new leader comes from the ISR or the ELR, or the partition says that it recovers",
            source="KIP-704; KIP-966, MaybeUpdatePartitionOnBrokerChange (kip_966_functions.tla)",
        ),
        Property(
            name="leader_in_service",
            meaning="a new leader is registered, neither fenced nor shutting down",
            source="KIP-631, Broker state; KIP-966, ValidControllerState",
            when=_OPERATION,
        ),
        Property(
            name="leader_directory_online",
            meaning="a new leader has its replica in a log directory that is online",
            source="KIP-858, Handle log directory failures",
            since=_DIRECTORIES,
            when=_OPERATION,
        ),
        Property(
            name="leader_where_eligible",
            meaning="a partition has a leader where a broker in service may lead it",
            source="KIP-966, NoLeaderChange (kip_966_functions.tla); generateLeaderAndIsrUpdates",
            since=_KAFKA_4,
            when=_OPERATION,
        ),
        Property(
            name="isr_joins_in_service",
            meaning="a broker that joins an ISR is registered, neither fenced nor shutting down",
            source="KIP-841",
            when=_OPERATION,
        ),
        Property(
            name="isr_in_service",
            meaning="no member of an ISR is fenced, shutting down or gone, unless it is the last of a leaderless one",
            source=f"KIP-966, ValidControllerState ({_SPEC_OF_KIP_966}); KIP-841",
            since=_KAFKA_4,
            when=_OPERATION,
        ),
        Property(
            name="recovering_isr",
            meaning="the ISR of a partition that recovers has one member, or none",
            source="KIP-704, AlterPartition",
        ),
        Property(
            name="recovered_by_leader",
            meaning="a recovery is ended by the partition's leader, which stays",
            source="KIP-704, AlterPartition",
        ),
        Property(
            name="partition_epoch_rises",
            meaning="the partition epoch never falls, and rises with each change of leader, ISR or replicas",
            source="KIP-497; KIP-966, ApplyPartitionChange (kip_966_functions.tla)",
        ),
        Property(
            name="leader_epoch_rises",
            meaning="the leader epoch never falls, and rises with each change of the leader",
            source="KIP-631, PartitionChangeRecord; KIP-966, ApplyPartitionChange (kip_966_functions.tla)",
        ),
        Property(
            name="reassignment_among_replicas",
            meaning="replicas that are added or removed are replicas, and none is both",
            source="KIP-455; PartitionReassignmentReplicas",
        ),
        Property(
            name="reassignment_ends_in_sync",
            meaning="a reassignment ends with its new replicas in the ISR, or without them",
            source="KIP-455; PartitionReassignmentReplicas.maybeCompleteReassignment",
        ),
        Property(
            name="broker_epoch_is_offset",
            meaning="a registration's broker epoch is an offset of its own batch, and above that of the one before",
            source="KIP-631, Broker registration; KIP-903",
        ),
        Property(
            name="broker_starts_fenced",
            meaning="a new incarnation of a broker is fenced until it has caught up",
            source="KIP-631, The broker state machine",
        ),
        Property(
            name="directory_of_one_broker",
            meaning="no two brokers have registered the same log directory",
            source="KIP-858, Broker registration",
            since=_DIRECTORIES,
        ),
        Property(
            name="producer_id_blocks",
            meaning="blocks of producer ids follow each other, 1000 ids each, and go to a registered broker",
            source="KIP-730",
        ),
        Property(
            name="features_supported",
            meaning="each registered broker supports each finalized feature level that it names",
            source="KIP-584, Feature updates; KIP-778",
            when=_OPERATION,
        ),
        Property(
            name="elr_needs_version",
            meaning="eligible leader replicas are on only from metadata.version 4.0-IV1 on",
            source="KIP-966, Enabling the feature; KIP-1022, feature dependencies",
            when=_OPERATION,
        ),
        Property(
            name="elr_needs_min_isr",
            meaning="with eligible leader replicas the cluster has one min.insync.replicas, and no broker its own",
            source="KIP-966, Enabling the feature; KAFKA-16540",
            since=_ELR,
            when=_OPERATION,
        ),
        Property(
            name="record_version",
            meaning="records of partitions and registrations have a version that metadata.version allows",
            source="KIP-778, Metadata record versions; MetadataVersion",
        ),
    )
}
"""The properties by name."""
