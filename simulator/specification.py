"""The public specification of KIP-966's replication: what it calls its properties, and the two that only it has.

Source: kip_966_properties.tla in github.com/Vanlightly/kafka-tlaplus. A violation names the property that is broken.
"""

from __future__ import annotations

from typing import Any

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.records.uuid import Uuid

MIN_ISR = 2
"""min.insync.replicas of all topics."""

LEADER_COMPLETENESS = "LeaderCompleteness"
LEADER_CANDIDATE_COMPLETENESS = "LeaderCandidateCompleteness"
LOG_MATCHING = "LogMatching"
METADATA_LOG_MATCHING = "MetadataLogMatching"
NO_COMMITTED_RECORD_LOST = "NoCommittedRecordLostGlobally"
CONSISTENT_READ = "ConsistentRead"
REPLICATION_QUORUM_SUPERSET = "ReplicationQuorumSuperset"
MIN_ISR_RECOVERY_QUORUM = "MinIsrRecoveryQuorum"
SAFETY = (
    LEADER_COMPLETENESS, LEADER_CANDIDATE_COMPLETENESS, LOG_MATCHING, METADATA_LOG_MATCHING, NO_COMMITTED_RECORD_LOST,
    CONSISTENT_READ, REPLICATION_QUORUM_SUPERSET, MIN_ISR_RECOVERY_QUORUM,
)  # fmt: skip
"""The properties of safety."""

EVENTUALLY_RUNS = "EventuallyRuns"
EVENTUALLY_UNFENCED = "EventuallyUnfenced"
ALTER_PARTITION_REACHED_OR_ZERO = "AlterPartitionEpochEventuallyReachedOrZero"
EVENTUALLY_METADATA_CONVERGES = "EventuallyMetadataConverges"
EVENTUALLY_ANSWERED = "EventuallyWriteIsAcceptedOrRejected"
EVENTUALLY_REPLICATED = "EventuallyAcknowledgedValueFullyReplicated"
EVENTUALLY_REASSIGNMENT_COMPLETES = "EventuallyReassignmentCompletes"
LIVENESS = (
    EVENTUALLY_RUNS, EVENTUALLY_UNFENCED, ALTER_PARTITION_REACHED_OR_ZERO, EVENTUALLY_METADATA_CONVERGES,
    EVENTUALLY_ANSWERED, EVENTUALLY_REPLICATED, EVENTUALLY_REASSIGNMENT_COMPLETES,
)  # fmt: skip
"""The properties of liveness, which are judged at the end of an hour, when no fault is left."""


def quorum_problem(partition: Any, topic_id: Uuid, state: PartitionRegistration) -> str:
    """Why the records of a leader may miss a broker that may lead next, "" where they can't.

    The high watermark waits for the leader's maximal ISR: every member of the controller's ISR and ELR has to be in it,
    unless the leader knows that the ISR is too small for a commit. `state` is the newest of the partition of a topic,
    and `partition` the broker's, perhaps still that of a deleted topic of the same name, or of an earlier epoch.
    """
    if not partition.is_leader or (partition.topic_id, partition.leader_epoch) != (topic_id, state.leader_epoch):
        return ""
    known = partition.in_sync.state
    left_out = {*state.isr, *state.elr} - known.maximal_isr
    if len(known.isr) < MIN_ISR or not left_out:
        return ""
    return f"waits for {sorted(known.maximal_isr)} only, with ISR {state.isr} and ELR {state.elr}"


def recovery_problem(state: PartitionRegistration) -> str:
    """Why a partition without a replica that has all records has none to recover from, "" where it has.

    The specification asks for min.insync.replicas of them; Kafka 4.4 keeps one, the last leader.
    """
    if state.isr or state.elr or len(state.last_known_elr) == 1:
        return ""
    return f"has neither ISR nor ELR, and knows {state.last_known_elr} for its last leader"
