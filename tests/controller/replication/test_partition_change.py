"""The record of a partition change is that of Kafka's own PartitionChangeBuilder for every state and target."""

from __future__ import annotations

import base64
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.controller.replication.partition_change import (
    Election,
    PartitionContext,
    TargetState,
    build_partition_change,
    hash_set_order,
)
from kraftlake.image.topics.directory_id import LOST, MIGRATING, UNASSIGNED
from kraftlake.image.topics.partition_registration import NO_LEADER, LeaderRecoveryState, PartitionRegistration
from kraftlake.records import metadata_version as mv
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid
from tests.interop.kafka_controllers import ask_kafka

BROKERS = tuple(range(1, 6))
DIRECTORIES = (MIGRATING, UNASSIGNED, LOST, Uuid(b"a" * 16), Uuid(b"b" * 16))
VERSIONS = (7, 11, 12, 16, 17, 22, 23, 33)
TOPIC = Uuid(b"topic-topic-topi")


@attrs.frozen
class Case:
    partition: PartitionRegistration
    version: int
    min_isr: int
    elr_enabled: bool
    acceptable: frozenset[int]
    default_dirs: dict[int, Uuid]
    target: TargetState

    def ours(self) -> bytes | None:
        record = build_partition_change(
            self.partition,
            PartitionContext(
                topic_id=TOPIC,
                partition_id=3,
                is_acceptable_leader=self.acceptable.__contains__,
                metadata_version=mv.from_feature_level(self.version),
                min_isr=self.min_isr,
                elr_enabled=self.elr_enabled,
                default_dir=self.default_dirs.__getitem__,
            ),
            self.target,
        )
        return None if record is None else encode_value(record.message, record.version)

    def as_request(self) -> dict[str, Any]:
        p, t = self.partition, self.target
        target: dict[str, Any] = {"election": t.election.name, "directories": _texts(t.directories)}
        lists = {"isr": t.isr, "replicas": t.replicas, "removing": t.removing, "adding": t.adding}
        target.update({name: value for name, value in lists.items() if value is not None})
        if t.recovery is not None:
            target["recovery"] = int(t.recovery)
        if t.unclean_shutdown is not None:
            target["uncleanShutdown"] = t.unclean_shutdown
        return {
            "partition": {
                "replicas": p.replicas,
                "directories": [str(directory) for directory in p.directories],
                "isr": p.isr,
                "removing": p.removing_replicas,
                "adding": p.adding_replicas,
                "elr": p.elr,
                "lastKnownElr": p.last_known_elr,
                "leader": p.leader,
                "recovery": int(p.leader_recovery_state),
                "leaderEpoch": p.leader_epoch,
                "partitionEpoch": p.partition_epoch,
            },
            "topicId": str(TOPIC),
            "partitionId": 3,
            "metadataVersion": self.version,
            "minIsr": self.min_isr,
            "elrEnabled": self.elr_enabled,
            "acceptable": sorted(self.acceptable),
            "defaultDirs": _texts(self.default_dirs),
            "target": target,
        }


def _texts(directories: Any) -> dict[str, str]:
    return {str(broker): str(directory) for broker, directory in directories.items()}


def _some_of(members: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(members), unique=True, max_size=len(members)).map(tuple) if members else st.just(())


@st.composite
def cases(draw: Any) -> Case:
    offset = draw(st.sampled_from((0, 0, 0, 14)))
    brokers = tuple(broker + offset for broker in BROKERS)
    replicas = draw(st.lists(st.sampled_from(brokers), min_size=1, max_size=5, unique=True).map(tuple))
    isr = draw(_some_of(replicas))
    elr_enabled = draw(st.booleans())
    version = 33 if elr_enabled else draw(st.sampled_from(VERSIONS))
    rest = tuple(replica for replica in replicas if replica not in isr)
    elr = draw(_some_of(rest)) if elr_enabled else ()
    if version < 17 or draw(st.booleans()):
        directories = (MIGRATING,) * len(replicas)
    else:
        directories = tuple(draw(st.sampled_from(DIRECTORIES)) for _ in replicas)
    adding, removing = draw(
        st.sampled_from((((), ()), (replicas[:1], ()), ((), replicas[-1:]), (replicas[:1], replicas[1:2])))
    )
    partition = PartitionRegistration(
        replicas=replicas,
        directories=directories,
        isr=isr,
        removing_replicas=removing,
        adding_replicas=adding,
        elr=elr,
        last_known_elr=draw(st.sampled_from(((), replicas[:1]))) if elr_enabled else (),
        leader=draw(st.sampled_from((*isr, NO_LEADER))),
        leader_recovery_state=draw(st.sampled_from(LeaderRecoveryState)),
        leader_epoch=draw(st.integers(0, 5)),
        partition_epoch=draw(st.integers(0, 5)),
    )
    return Case(
        partition=partition,
        version=version,
        min_isr=draw(st.integers(1, 3)),
        elr_enabled=elr_enabled,
        acceptable=frozenset(draw(_some_of(brokers))),
        default_dirs={broker: draw(st.sampled_from(DIRECTORIES)) for broker in brokers},
        target=draw(targets(partition, brokers, version)),
    )


@st.composite
def targets(draw: Any, partition: PartitionRegistration, brokers: tuple[int, ...], version: int) -> TargetState:
    kind = draw(st.sampled_from(("elect", "isr", "reassign", "revert", "unclean", "directory")))
    election = draw(st.sampled_from(Election))
    if kind == "isr":
        recovery = draw(st.none() | st.sampled_from(LeaderRecoveryState))
        return TargetState(isr=draw(_some_of(partition.replicas)), election=election, recovery=recovery)
    if kind == "reassign":
        replicas = draw(st.lists(st.sampled_from(brokers), min_size=1, unique=True).map(tuple))
        adding = tuple(sorted(set(replicas) - set(partition.replicas)))
        removing = tuple(sorted(set(partition.replicas) - set(replicas)))
        return TargetState(replicas=(*replicas, *removing), adding=adding or None, removing=removing or None)
    if kind == "revert":
        replicas = tuple(r for r in partition.replicas if r not in partition.adding_replicas) or partition.replicas
        isr = tuple(r for r in partition.isr if r in replicas)
        return TargetState(isr=isr, replicas=replicas, adding=(), removing=(), election=election)
    if kind == "unclean":
        gone = draw(st.sampled_from(partition.replicas))
        return TargetState(isr=tuple(r for r in partition.isr if r != gone), unclean_shutdown=gone, election=election)
    if kind == "directory" and version >= 17:
        return TargetState(directories={draw(st.sampled_from(partition.replicas)): draw(st.sampled_from(DIRECTORIES))})
    return TargetState(election=election)


@pytest.mark.spark
@settings(max_examples=max(200, settings.default.max_examples))
@given(cases())
def test_kafka_makes_the_same_record_of_every_change(case: Case) -> None:
    theirs = ask_kafka("change", case.as_request())
    assert case.ours() == (None if theirs is None else base64.b64decode(theirs))


def three_replicas(**changes: Any) -> PartitionRegistration:
    partition = PartitionRegistration(
        replicas=(1, 2, 3),
        directories=(MIGRATING,) * 3,
        isr=(1, 2, 3),
        leader=1,
        leader_epoch=4,
        partition_epoch=9,
    )
    return attrs.evolve(partition, **changes)


def change(
    partition: PartitionRegistration, target: TargetState, *alive: int, min_isr: int = 1, elr: bool = False
) -> PartitionChangeRecord | None:
    context = PartitionContext(
        topic_id=TOPIC,
        partition_id=0,
        is_acceptable_leader=alive.__contains__,
        metadata_version=mv.LATEST_PRODUCTION,
        min_isr=min_isr,
        elr_enabled=elr,
        default_dir=lambda _: MIGRATING,
    )
    record = build_partition_change(partition, context, target)
    if record is None:
        return None
    assert isinstance(record.message, PartitionChangeRecord)
    return record.message


def test_a_lost_leader_is_replaced_by_the_next_replica_in_sync() -> None:
    record = change(three_replicas(), TargetState(isr=(2, 3)), 2, 3)
    assert record is not None
    assert (record.leader, record.isr) == (2, (2, 3))


def test_without_elr_a_partition_keeps_its_isr_when_the_only_replica_in_sync_is_lost() -> None:
    record = change(three_replicas(isr=(1,)), TargetState(isr=()), 2, 3)
    assert record is not None
    assert (record.leader, record.isr) == (NO_LEADER, None)


def test_with_elr_the_last_isr_member_becomes_eligible_and_is_elected_after_a_restart() -> None:
    record = change(three_replicas(isr=(1,)), TargetState(isr=()), 2, 3, min_isr=2, elr=True)
    assert record is not None
    assert (record.leader, record.isr, record.eligible_leader_replicas, record.last_known_elr) == (
        NO_LEADER, (), (1,), (1,),
    )  # fmt: skip
    after = three_replicas(isr=(1,)).merge(record)
    back = change(after, TargetState(), 1, min_isr=2, elr=True)
    assert back is not None
    assert (back.leader, back.isr, back.eligible_leader_replicas, back.last_known_elr) == (1, (1,), (), ())


def test_after_an_unclean_election_the_isr_is_the_recovering_leader() -> None:
    record = change(three_replicas(isr=(1,)), TargetState(election=Election.UNCLEAN), 3)
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (3, (3,), LeaderRecoveryState.RECOVERING)


def test_a_reassignment_is_completed_by_the_isr_that_has_all_new_replicas() -> None:
    moving = three_replicas(
        replicas=(4, 1, 2, 3), directories=(MIGRATING,) * 4, adding_replicas=(4,), removing_replicas=(3,)
    )
    record = change(moving, TargetState(isr=(1, 2, 3, 4)), 1, 2, 3, 4)
    assert record is not None
    assert (record.replicas, record.isr, record.adding_replicas, record.removing_replicas) == (
        (4, 1, 2), (1, 2, 4), (), (),
    )  # fmt: skip
    assert record.leader == 1, "who no longer follows hears of it by a new leader epoch"


def test_a_change_without_effect_has_no_record() -> None:
    assert change(three_replicas(), TargetState(), 1, 2, 3) is None


def test_the_order_of_a_java_hash_set_is_that_of_its_buckets() -> None:
    assert hash_set_order((17, 2), (1, 33)) == [17, 1, 33, 2]
