"""Changes of leaders and ISRs when a broker starts, stops or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftlake.controller.replication.partition_change import (
    Election,
    PartitionContext,
    TargetState,
    build_partition_change,
)
from kraftlake.controller.replication.partitions import Found
from kraftlake.controller.state import ControllerState
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.serde import ApiMessageAndVersion

NO_BROKER = -1


def change_context(
    state: ControllerState,
    topic: TopicImage,
    partition_id: int,
    partition: PartitionRegistration,
    is_acceptable: Callable[[int], bool] | None = None,
) -> PartitionContext:
    """Return the context of a change of the partition; a leader must be active, and its directory online.

    `is_acceptable` replaces the check for active brokers when the state of a broker changes with the partition.
    """
    acceptable = is_acceptable or state.is_active

    def may_lead(broker: int) -> bool:
        if not acceptable(broker):
            return False
        directory = partition.directory(broker)
        return directory is not None and state.has_online_dir(broker, directory)

    return PartitionContext(
        topic_id=topic.id,
        partition_id=partition_id,
        is_acceptable_leader=may_lead,
        metadata_version=state.metadata_version,
        min_isr=state.effective_min_isr(topic),
        elr_enabled=state.elr_enabled,
        default_dir=state.default_dir,
    )


def change_records(
    state: ControllerState,
    topic: TopicImage,
    partition_id: int,
    partition: PartitionRegistration,
    target: TargetState,
) -> list[ApiMessageAndVersion]:
    """Return the record that brings the partition as near to `target` as possible; none if nothing changes."""
    record = build_partition_change(partition, change_context(state, topic, partition_id, partition), target)
    return [] if record is None else [record]


def election_of(state: ControllerState, topic: str) -> Election:
    """The election that replaces a lost leader: an unclean one if the topic's config allows it."""
    return Election.UNCLEAN if state.unclean_election_enabled(topic) else Election.ONLINE


def leader_and_isr_updates(
    state: ControllerState,
    found: Iterable[Found],
    *,
    remove: int = NO_BROKER,
    add: int = NO_BROKER,
    unclean_shutdown: int = NO_BROKER,
) -> list[ApiMessageAndVersion]:
    """Return the changes of the partitions `found` when a broker is removed, is added, or had an unclean shutdown.

    Source: ReplicationControlManager.generateLeaderAndIsrUpdates.
    """

    def is_acceptable(broker: int) -> bool:
        return broker not in (remove, unclean_shutdown) and (broker == add or state.is_active(broker))

    records = []
    for name, partition_id, partition in found:
        topic = state.topic(name)
        assert topic is not None, "it was found in the same image"
        target = TargetState(
            isr=tuple(replica for replica in partition.isr if replica not in (remove, unclean_shutdown)),
            election=election_of(state, name),
            unclean_shutdown=None if unclean_shutdown == NO_BROKER else unclean_shutdown,
        )
        context = change_context(state, topic, partition_id, partition, is_acceptable)
        record = build_partition_change(partition, context, target)
        if record is not None:
            records.append(record)
    return records
