"""AssignReplicasToDirs: a broker reports the log directories of its replicas (KIP-858)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.leader_and_isr import change_records, leader_and_isr_updates
from kraftlake.controller.replication.partition_change import TargetState
from kraftlake.controller.replication.partitions import Found
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

ReplicaPlace: TypeAlias = tuple[Uuid, int]
"""A topic id and a partition id."""


def assign_replicas_to_dirs(
    state: ControllerState,
    broker_id: int,
    broker_epoch: int,
    directories: Mapping[Uuid, Sequence[ReplicaPlace]],
) -> ControllerResult[dict[tuple[Uuid, ReplicaPlace], ErrorCode]]:
    """Record the directories of replicas; a replica in an offline directory leaves the ISR."""
    if not state.metadata_version.is_directory_assignment_supported:
        raise ControllerApiError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment needs metadata.version 3.7-IV2.")
    registration = state.check_broker_epoch(broker_id, broker_epoch)
    records: list[ApiMessageAndVersion] = []
    answers: dict[tuple[Uuid, ReplicaPlace], ErrorCode] = {}
    offline: dict[ReplicaPlace, Found] = {}
    for directory, places in directories.items():
        for place in places:
            error, found = _assign(state, broker_id, directory, place, records)
            answers[directory, place] = error
            if found is not None and not registration.has_online_dir(directory):
                offline[place] = found
    records += leader_and_isr_updates(state, offline.values(), remove=broker_id)
    return ControllerResult(records, answers)


def _assign(
    state: ControllerState,
    broker_id: int,
    directory: Uuid,
    place: ReplicaPlace,
    records: list[ApiMessageAndVersion],
) -> tuple[ErrorCode, Found | None]:
    topic = state.image.topics.get_topic_by_id(place[0])
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    partition = topic.partitions.get(place[1])
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
    changes = change_records(state, topic, place[1], partition, TargetState(directories={broker_id: directory}))
    records += changes
    for change in changes:  # which may end a reassignment: a replica that it removes is not elected after it
        assert isinstance(change.message, PartitionChangeRecord)
        partition = partition.merge(change.message)
    return ErrorCode.NONE, (topic.name, place[1], partition)
