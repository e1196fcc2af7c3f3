from __future__ import annotations

import attrs
import pytest

from kraftlake.image.topics.directory_id import LOST, MIGRATING, UNASSIGNED
from kraftlake.image.topics.partition_registration import LeaderRecoveryState, PartitionRegistration
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord
from kraftlake.runtime.errors import ReplayError
from tests.histories import uuid_of

RECORD = PartitionRecord(
    partition_id=0, topic_id=uuid_of(5), replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=6,
    directories=(uuid_of(201), LOST, UNASSIGNED),
)  # fmt: skip
PARTITION = PartitionRegistration.from_record(RECORD)


def change(**fields):
    return PartitionChangeRecord(partition_id=0, topic_id=uuid_of(5), **fields)


def test_the_special_directories_are_kafkas():
    assert [str(id_) for id_ in (MIGRATING, UNASSIGNED, LOST)] == [
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "AAAAAAAAAAAAAAAAAAAAAg",
    ]


def test_a_partition_without_directories_is_migrating_everywhere():
    partition = PartitionRegistration.from_record(attrs.evolve(RECORD, directories=()))
    assert partition.directories == (MIGRATING,) * 3
    assert partition.all_migrating
    assert not PARTITION.all_migrating


def test_a_change_of_the_leader_raises_both_epochs():
    changed = PARTITION.merge(change(leader=2, isr=(2,)))
    assert changed == attrs.evolve(PARTITION, leader=2, isr=(2,), leader_epoch=5, partition_epoch=7)


def test_a_change_to_the_same_leader_raises_both_epochs_too():
    assert PARTITION.merge(change(leader=1)) == attrs.evolve(PARTITION, leader_epoch=5, partition_epoch=7)


def test_a_change_without_a_leader_raises_the_partition_epoch_only():
    assert PARTITION.merge(change(isr=())) == attrs.evolve(PARTITION, isr=(), partition_epoch=7)


def test_an_empty_list_is_a_change_and_null_is_none():
    full = attrs.evolve(PARTITION, elr=(3,), last_known_elr=(1,), adding_replicas=(3,), removing_replicas=(2,))
    assert full.merge(change()) == attrs.evolve(full, partition_epoch=7)
    emptied = full.merge(
        change(eligible_leader_replicas=(), last_known_elr=(), adding_replicas=(), removing_replicas=())
    )
    assert emptied == attrs.evolve(PARTITION, partition_epoch=7)


def test_the_recovery_state_changes_when_it_is_given():
    recovering = PARTITION.merge(change(leader_recovery_state=1))
    assert recovering.leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert recovering.merge(change()).leader_recovery_state is LeaderRecoveryState.RECOVERING
    assert recovering.merge(change(leader_recovery_state=0)).leader_recovery_state is LeaderRecoveryState.RECOVERED


def test_replicas_that_change_without_directories_keep_them_by_place():
    changed = PARTITION.merge(change(replicas=(3, 2, 1)))
    assert changed.directories == PARTITION.directories
    assert changed.directory(3) == uuid_of(201)
    assert PARTITION.directory(3) == UNASSIGNED
    assert PARTITION.directory(9) is None


def test_a_migrating_partition_stays_so_when_its_replicas_change():
    migrating = attrs.evolve(PARTITION, directories=(MIGRATING,) * 3)
    assert migrating.merge(change(replicas=(1, 2))).directories == (MIGRATING,) * 2


@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": (1, 2)},
        {"replicas": (1, 2), "directories": (uuid_of(201),)},
        {"replicas": (1, 2), "directories": (MIGRATING,)},
        {"directories": (uuid_of(201),)},
    ],
)
def test_directories_that_do_not_fit_the_replicas_are_refused(fields):
    with pytest.raises(ReplayError, match=r"the partition has \d replicas but \d log directories"):
        PARTITION.merge(change(**fields))


def test_a_new_partition_whose_directories_do_not_fit_is_refused():
    with pytest.raises(ReplayError, match="3 replicas but 1 log directories"):
        PartitionRegistration.from_record(attrs.evolve(RECORD, directories=(MIGRATING,)))


@pytest.mark.parametrize("state", [-1, 2, 127])
def test_a_recovery_state_that_means_nothing_is_refused(state):
    with pytest.raises(ReplayError, match="no leader recovery state"):
        PartitionRegistration.from_record(attrs.evolve(RECORD, leader_recovery_state=state))
    if state != -1:
        with pytest.raises(ReplayError, match="no leader recovery state"):
            PARTITION.merge(change(leader_recovery_state=state))
