"""The record that changes a partition to a target state: leader election, ISR, ELR, reassignment.

Source: org.apache.kafka.controller.PartitionChangeBuilder of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs

from kraftlake.controller.replication.reassignment import complete_reassignment
from kraftlake.image.topics.partition_registration import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionRegistration,
)
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid


class Election(Enum):
    """The choice of a leader.

    ONLINE keeps the current leader if possible, PREFERRED prefers the first replica, UNCLEAN allows a replica that is
    not in sync if there is no other.
    """

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@attrs.frozen(kw_only=True)
class PartitionContext:
    """The inputs of a change besides the state of the partition.

    `is_acceptable_leader` returns whether a broker id may lead, `default_dir` the directory of a new replica on it.
    """

    topic_id: Uuid
    partition_id: int
    is_acceptable_leader: Callable[[int], bool]
    metadata_version: MetadataVersion
    min_isr: int
    elr_enabled: bool
    default_dir: Callable[[int], Uuid]


@attrs.frozen(kw_only=True)
class TargetState:
    """The wanted state of a partition; None means unchanged.

    `unclean_shutdown` is a broker restarted after an unclean shutdown, which can't be an eligible leader replica.
    `directories` has new directories by broker.
    """

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    recovery: LeaderRecoveryState | None = None
    election: Election = Election.ONLINE
    unclean_shutdown: int | None = None
    directories: Mapping[int, Uuid] = attrs.field(factory=dict)


def build_partition_change(
    partition: PartitionRegistration, context: PartitionContext, target: TargetState
) -> ApiMessageAndVersion | None:
    """Return the PartitionChangeRecord that brings a partition as near to `target` as possible.

    None if nothing changes. The record also completes a reassignment whose new replicas are in the ISR, and replaces a
    leader that can't remain, possibly by none. A replica that leaves an ISR below `min_isr` becomes an eligible leader
    replica.
    """
    return _Change(partition, context, target).build()


class _Change:
    def __init__(self, partition: PartitionRegistration, context: PartitionContext, target: TargetState) -> None:
        self._partition = partition
        self._context = context
        self._target = target
        self._isr = partition.isr if target.isr is None else target.isr
        self._replicas = partition.replicas if target.replicas is None else target.replicas
        self._removing = partition.removing_replicas if target.removing is None else target.removing
        self._adding = partition.adding_replicas if target.adding is None else target.adding
        self._elr = partition.elr
        self._fields: dict[str, Any] = {}

    def build(self) -> ApiMessageAndVersion | None:
        fields, partition, context = self._fields, self._partition, self._context
        self._complete_reassignment()
        if context.elr_enabled:
            self._populate_elr()
        self._elect()
        # a new leader epoch makes removed replicas stop following
        if "leader" not in fields and not set(self._replicas) >= set(partition.replicas):
            fields["leader"] = partition.leader
        self._set_elr()
        if "isr" not in fields and (self._isr or context.elr_enabled) and self._isr != partition.isr:
            fields["isr"] = self._isr
        self._bump_epoch_on_shrink()
        self._set_last_known_leader()
        self._set_assignment()
        recovery = self._target.recovery
        if recovery is not None and recovery is not partition.leader_recovery_state:
            fields["leader_recovery_state"] = int(recovery)
        if not fields:
            return None
        record = PartitionChangeRecord(topic_id=context.topic_id, partition_id=context.partition_id, **fields)
        return ApiMessageAndVersion(record, context.metadata_version.partition_change_record_version)

    def _complete_reassignment(self) -> None:
        done = complete_reassignment(self._removing, self._adding, self._replicas, self._isr)
        if done is not None:
            self._replicas, self._isr = done
            self._removing = self._adding = ()

    def _populate_elr(self) -> None:
        """Add each replica that leaves an ISR below the minimum to the ELR: the replica has all committed records."""
        if len(self._isr) >= self._context.min_isr:
            self._elr = ()
            return
        unclean = self._target.unclean_shutdown
        candidates = hash_set_order(self._elr, self._partition.isr)
        self._elr = tuple(r for r in candidates if r not in self._isr and r != unclean)

    def _elect(self) -> None:
        leader, unclean = self._elected()
        if leader == self._partition.leader:
            return
        if leader in self._elr:
            self._isr = (leader,)
            self._elr = tuple(replica for replica in self._elr if replica != leader)
        self._fields["leader"] = leader
        if unclean:
            self._fields["isr"] = (leader,)
            if self._partition.leader_recovery_state is not LeaderRecoveryState.RECOVERING:
                self._fields["leader_recovery_state"] = int(LeaderRecoveryState.RECOVERING)

    def _elected(self) -> tuple[int, bool]:
        """Return the new leader, and whether it may lack committed records."""
        current = self._partition.leader
        wanted = [current, *self._replicas]
        if self._target.election is Election.PREFERRED:
            wanted = [self._replicas[0], current, *self._replicas[1:]]
        for replica in wanted:
            if self._is_valid_leader(replica):
                return replica, False
        if self._can_elect_last_known_leader():
            return self._partition.last_known_elr[0], True
        if self._target.election is Election.UNCLEAN:
            for replica in self._replicas:
                if self._context.is_acceptable_leader(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_valid_leader(self, replica: int) -> bool:
        eligible = replica in self._isr or (not self._isr and replica in self._elr)
        return eligible and self._context.is_acceptable_leader(replica)

    def _can_elect_last_known_leader(self) -> bool:
        known = self._partition.last_known_elr
        lost_all = self._context.elr_enabled and not self._elr and not self._isr
        return lost_all and len(known) == 1 and self._context.is_acceptable_leader(known[0])

    def _set_elr(self) -> None:
        if "isr" in self._fields or not self._context.elr_enabled:
            self._elr = ()
        if self._elr != self._partition.elr:
            self._fields["eligible_leader_replicas"] = self._elr

    def _bump_epoch_on_shrink(self) -> None:
        isr = self._fields.get("isr")
        bump = self._context.metadata_version.is_leader_epoch_bump_required_on_isr_shrink
        if bump and "leader" not in self._fields and isr is not None and not set(isr) >= set(self._partition.isr):
            self._fields["leader"] = self._partition.leader

    def _set_last_known_leader(self) -> None:
        leader = self._fields.get("leader", NO_LEADER_CHANGE)
        known = self._partition.last_known_elr
        if not self._context.elr_enabled:
            return
        if leader == NO_LEADER and not known:
            self._fields["last_known_elr"] = (self._partition.leader,)
        elif leader >= 0 and known:
            self._fields["last_known_elr"] = ()

    def _set_assignment(self) -> None:
        partition = self._partition
        if self._replicas:
            if self._context.metadata_version.is_directory_assignment_supported:
                directories = self._directories()
                if directories != partition.directories:
                    self._fields["directories"] = directories
            if self._replicas != partition.replicas:
                self._fields["replicas"] = self._replicas
        if self._removing != partition.removing_replicas:
            self._fields["removing_replicas"] = self._removing
        if self._adding != partition.adding_replicas:
            self._fields["adding_replicas"] = self._adding

    def _directories(self) -> tuple[Uuid, ...]:
        known = dict(zip(self._partition.replicas, self._partition.directories, strict=True))
        known.update(self._target.directories)
        return tuple(known[r] if r in known else self._context.default_dir(r) for r in self._replicas)


def hash_set_order(first: Sequence[int], then: Iterable[int]) -> list[int]:
    """Return the members in the order of a Java HashSet of `first` to which `then` is added: Kafka writes that order.

    The order is Java's for broker ids below 65,536, and another fixed one for larger ids.
    """
    members = dict.fromkeys(first)
    buckets = 16
    while buckets < int(len(members) / 0.75) + 1:
        buckets *= 2
    members.update(dict.fromkeys(then))
    while len(members) > buckets * 0.75:
        buckets *= 2
    return sorted(members, key=lambda member: (member ^ (member >> 16)) & (buckets - 1))
