"""The state of one partition."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import attrs

from kraftlake.image.topics.directory_id import MIGRATING
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.fast_construct import mutable_class
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError

NO_LEADER: Final = -1
"""The leader of a partition without a leader."""
NO_LEADER_CHANGE: Final = -2
"""The leader in a PartitionChangeRecord that leaves leader and leader epoch unchanged."""
NO_RECOVERY_STATE_CHANGE: Final = -1

ELR_LOST: Final = "the eligible leader replicas of one or more partitions"
DIRECTORIES_LOST: Final = "the log directories of one or more replicas"
"""What records of an earlier metadata.version lack."""


class LeaderRecoveryState(IntEnum):
    """Whether the leader still has to recover from an unclean election.

    Source: org.apache.kafka.metadata.LeaderRecoveryState.
    """

    RECOVERED = 0
    RECOVERING = 1

    @classmethod
    def of(cls, value: int) -> LeaderRecoveryState:
        """The state with that number; ReplayError if there is none."""
        if value == 0:
            return cls.RECOVERED
        if value == 1:
            return cls.RECOVERING
        raise ReplayError(f"{value} is no leader recovery state (0 is recovered, 1 is recovering).")


@attrs.frozen(kw_only=True, weakref_slot=False)
class PartitionRegistration:
    """Replicas, leader and epochs of a partition. Source: org.apache.kafka.metadata.PartitionRegistration.

    `directories` has one id for each replica, in the order of `replicas`; if none was ever given, all are MIGRATING.
    `elr` and `last_known_elr` (KIP-966) are the eligible leader replicas and the last leader before there were none.
    """

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    leader_epoch: int
    partition_epoch: int

    @classmethod
    def from_record(cls, record: PartitionRecord) -> PartitionRegistration:
        """The state in a PartitionRecord; ReplayError if the record contradicts itself."""
        if record.directories and len(record.directories) != len(record.replicas):
            raise _unequal(len(record.replicas), len(record.directories))
        return cls(
            replicas=record.replicas,
            directories=_or_all_migrating(record.directories, len(record.replicas)),
            isr=record.isr,
            removing_replicas=record.removing_replicas,
            adding_replicas=record.adding_replicas,
            elr=record.eligible_leader_replicas or (),
            last_known_elr=record.last_known_elr or (),
            leader=record.leader,
            leader_recovery_state=LeaderRecoveryState.of(record.leader_recovery_state),
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def merge(self, record: PartitionChangeRecord) -> PartitionRegistration:
        """The state after a change: the partition epoch is incremented, and with a new leader the leader epoch, too.

        ReplayError if the numbers of replicas and directories would differ.
        """
        made = _new(_Mutable)  # built fast (see `mutable_class`), since every change of a partition makes one
        if record.replicas is None and record.directories is None:
            made.replicas = self.replicas
            made.directories = self.directories
        else:
            made.replicas, made.directories = self._placed_anew(record)
        made.isr = self.isr if record.isr is None else record.isr
        removing, adding = record.removing_replicas, record.adding_replicas
        made.removing_replicas = self.removing_replicas if removing is None else removing
        made.adding_replicas = self.adding_replicas if adding is None else adding
        elr, last_known_elr = record.eligible_leader_replicas, record.last_known_elr
        made.elr = self.elr if elr is None else elr
        made.last_known_elr = self.last_known_elr if last_known_elr is None else last_known_elr
        if record.leader == NO_LEADER_CHANGE:
            made.leader = self.leader
            made.leader_epoch = self.leader_epoch
        else:
            made.leader = record.leader
            made.leader_epoch = epoch_after(self.leader_epoch)
        recovery = record.leader_recovery_state
        made.leader_recovery_state = (
            self.leader_recovery_state if recovery == NO_RECOVERY_STATE_CHANGE else LeaderRecoveryState.of(recovery)
        )
        made.partition_epoch = epoch_after(self.partition_epoch)
        made.__class__ = PartitionRegistration
        return made  # type: ignore[no-any-return]

    def _placed_anew(self, record: PartitionChangeRecord) -> tuple[tuple[int, ...], tuple[Uuid, ...]]:
        """Replicas and directories after a change of either; ReplayError if they differ in number."""
        replicas = self.replicas if record.replicas is None else record.replicas
        given = record.directories
        if given and record.replicas is not None and len(given) != len(replicas):
            raise _unequal(len(replicas), len(given))
        directories = _or_all_migrating(self.directories if given is None else given, len(replicas))
        if len(directories) != len(replicas):
            raise _unequal(len(replicas), len(directories))
        return replicas, directories

    @property
    def all_migrating(self) -> bool:
        """Whether no directory of a replica was ever recorded."""
        return self.directories.count(MIGRATING) == len(self.directories)

    def directory(self, replica: int) -> Uuid | None:
        """The directory of a replica; None if the broker is not one of the replicas."""
        return self.directories[self.replicas.index(replica)] if replica in self.replicas else None

    def to_record(self, topic_id: Uuid, partition_id: int, options: ImageWriterOptions) -> ApiMessageAndVersion:
        """The PartitionRecord with this state; state that the record can't hold goes to the loss handler."""
        version = options.metadata_version
        with_elr = options.elr_enabled and version.is_elr_supported
        if not with_elr and (self.elr or self.last_known_elr):
            options.handle_loss(ELR_LOST)
        with_directories = version.is_directory_assignment_supported
        if not with_directories and not self.all_migrating:
            options.handle_loss(DIRECTORIES_LOST)
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=self.replicas,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=int(self.leader_recovery_state),
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=self.directories if with_directories else (),
            eligible_leader_replicas=(self.elr or None) if with_elr else None,
            last_known_elr=(self.last_known_elr or None) if with_elr else None,
        )
        return ApiMessageAndVersion(record, version.partition_record_version)


_new: Any = object.__new__
_Mutable: Any = mutable_class(PartitionRegistration)


def epoch_after(epoch: int) -> int:
    """The next epoch: a Java int, which wraps around."""
    return epoch + 1 if epoch < 0x7FFF_FFFF else -0x8000_0000


def _or_all_migrating(directories: tuple[Uuid, ...], replicas: int) -> tuple[Uuid, ...]:
    return (MIGRATING,) * replicas if directories.count(MIGRATING) == len(directories) else directories


def _unequal(replicas: int, directories: int) -> ReplayError:
    return ReplayError(f"the partition has {replicas} replicas but {directories} log directories.")
