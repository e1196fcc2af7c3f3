"""Sound logs violate no property of the specifications; each property is violated by a log made for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.controller.errors import ControllerApiError
from kraftlake.kafka_files.directory import open_directory
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.record_faults import type_of
from kraftlake.replay.spec.judge import FULL_BATCH, judge_log
from kraftlake.replay.spec.properties import PROPERTIES
from kraftlake.replay.spec.spec_report import MAX_VIOLATIONS, SpecReport
from tests.controller.controlled_cluster import EPOCH, ControlledCluster, directory, incarnation
from tests.controller.random_commands import BROKERS, COMMANDS
from tests.controller.test_histories import clusters
from tests.few_examples import few_examples
from tests.replay.made_logs import MadeLog
from tests.replay.sample_logs import directory_of

ELR = "eligible.leader.replicas.version"


def judged(log: Sequence[RecordBatch]) -> SpecReport:
    report = judge_log(MadeLog(records=tuple(log)))
    assert report.stopped is None
    return report


def cluster_at(level: int = 33, *, elr: bool = True) -> ControlledCluster:
    """Four brokers in service, and a topic with two partitions that wants two replicas in sync."""
    cluster = ControlledCluster(version=from_feature_level(level), features={ELR: int(elr)} if level >= 23 else {})
    cluster.start(*BROKERS)
    cluster.assigned("orders", (1, 2, 3), (2, 3, 4), configs={"min.insync.replicas": "2"})
    return cluster


def add(cluster: ControlledCluster, *messages: Message, version: int | None = None) -> None:
    """A batch behind the log that no controller has thought of; versions are those that metadata.version allows."""
    of = cluster.state.metadata_version
    versions = {
        r.PartitionChangeRecord: of.partition_change_record_version,
        r.PartitionRecord: of.partition_record_version,
        r.RegisterBrokerRecord: of.register_broker_record_version,
    }
    records = [ApiMessageAndVersion(m, versions.get(type(m), 0) if version is None else version) for m in messages]
    base = cluster.log[-1].last_offset + 1
    cluster.log.append(RecordBatch.of(base, EPOCH, cluster.clock.milliseconds(), records))


def change(cluster: ControlledCluster, **fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=cluster.topic_id("orders"), partition_id=0, **fields)


def again(cluster: ControlledCluster, **fields: Any) -> r.PartitionRecord:
    known = cluster.partition("orders")
    values = {"isr": known.isr, "leader": known.leader, "leader_epoch": 5, "partition_epoch": 5, **fields}
    return r.PartitionRecord(
        topic_id=cluster.topic_id("orders"), partition_id=0, replicas=known.replicas, directories=known.directories,
        **values,
    )  # fmt: skip


def registration(cluster: ControlledCluster, **fields: Any) -> r.RegisterBrokerRecord:
    values = {"broker_epoch": cluster.log[-1].last_offset + 1, "log_dirs": (directory(5),), **fields}
    return r.RegisterBrokerRecord(broker_id=5, incarnation_id=incarnation(5), **values)


def fenced_2(cluster: ControlledCluster) -> ControlledCluster:
    cluster.heartbeat(2, want_fence=True)
    return cluster


Plant = Callable[[], ControlledCluster]


def planted(
    *steps: Callable[[ControlledCluster], Message], cluster: Callable[[], Any] = cluster_at, **how: Any
) -> Plant:
    """A log with records in batches of their own, of which the last violates the property."""

    def plant() -> ControlledCluster:
        made: ControlledCluster = cluster()
        for step in steps[:-1]:
            add(made, step(made))
        add(made, steps[-1](made), **how)
        return made

    return plant


def changed(**fields: Any) -> Callable[[ControlledCluster], Message]:
    return lambda cluster: change(cluster, **fields)


SWAP = {"replicas": (1, 2, 4, 3), "adding_replicas": (4,), "removing_replicas": (3,)}
DONE = {"replicas": (1, 2, 4), "adding_replicas": (), "removing_replicas": (), "isr": (1, 2)}

PLANTS: dict[str, Plant] = {
    "replicas_distinct": planted(changed(isr=(1, 2, 2))),
    "isr_among_replicas": planted(changed(isr=(1, 2, 3, 4))),
    "elr_among_replicas": planted(changed(isr=(1,), eligible_leader_replicas=(4,))),
    "elr_outside_isr": planted(changed(isr=(1,), eligible_leader_replicas=(1,))),
    "elr_only_below_min_isr": planted(changed(isr=(1, 2), eligible_leader_replicas=(3,))),
    "elr_from_isr": planted(changed(isr=(1, 2)), changed(isr=(1,), eligible_leader_replicas=(3,))),
    "elr_keeps_members": planted(changed(isr=(1,), eligible_leader_replicas=(2,))),
    "isr_not_empty": planted(changed(isr=(), leader=-1), cluster=lambda: cluster_at(elr=False)),
    "min_isr_recovery_quorum": planted(changed(isr=(), leader=-1)),
    "last_known_leader": planted(changed(last_known_elr=(1,))),
    "leader_in_isr": planted(changed(isr=(2, 3))),
    "leader_change_is_clean": planted(changed(isr=(1, 2)), changed(isr=(3,), leader=3)),
    "leader_in_service": planted(changed(isr=(2,), leader=2), cluster=lambda: fenced_2(cluster_at())),
    "leader_directory_online": planted(
        changed(leader=2, directories=(directory(1), directory(2, 7), directory(3))),
    ),
    "leader_where_eligible": planted(changed(leader=-1, last_known_elr=(1,))),
    "isr_joins_in_service": planted(changed(isr=(1, 3, 2)), cluster=lambda: fenced_2(cluster_at())),
    "isr_in_service": planted(
        lambda cluster: r.BrokerRegistrationChangeRecord(
            broker_id=2, broker_epoch=cluster.image.cluster.brokers[2].epoch, fenced=1
        )
    ),
    "recovering_isr": planted(changed(leader_recovery_state=1)),
    "recovered_by_leader": planted(
        changed(isr=(1,), eligible_leader_replicas=(2, 3), leader_recovery_state=1),
        changed(isr=(2,), leader=2, leader_recovery_state=0),
    ),
    "partition_epoch_rises": planted(changed(isr=(1, 2)), lambda cluster: again(cluster, partition_epoch=0)),
    "leader_epoch_rises": planted(changed(leader=2), lambda cluster: again(cluster, leader_epoch=0)),
    "reassignment_among_replicas": planted(changed(adding_replicas=(4,))),
    "reassignment_ends_in_sync": planted(
        changed(**SWAP, directories=tuple(map(directory, (1, 2, 4, 3)))),
        changed(**DONE, directories=tuple(map(directory, (1, 2, 4)))),
    ),
    "broker_epoch_is_offset": planted(lambda cluster: registration(cluster, broker_epoch=3)),
    "broker_starts_fenced": planted(lambda cluster: registration(cluster, fenced=False)),
    "directory_of_one_broker": planted(lambda cluster: registration(cluster, log_dirs=(directory(1),))),
    "producer_id_blocks": planted(
        *(
            lambda cluster, end=end: r.ProducerIdsRecord(  # type: ignore[misc]
                broker_id=1, broker_epoch=cluster.image.cluster.brokers[1].epoch, next_producer_id=end
            )
            for end in (1_000, 2_500)
        )
    ),
    "features_supported": planted(lambda _: r.FeatureLevelRecord(name="share.version", feature_level=9)),
    "elr_needs_version": planted(
        lambda _: r.FeatureLevelRecord(name=ELR, feature_level=1), cluster=lambda: cluster_at(17, elr=False)
    ),
    "elr_needs_min_isr": planted(
        lambda _: r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=None)
    ),
    "record_version": planted(changed(isr=(1, 2)), cluster=lambda: cluster_at(12, elr=False), version=2),
}


def test_each_property_has_a_planted_violation() -> None:
    assert PLANTS.keys() == PROPERTIES.keys()


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_planted_violation_is_found_at_its_record(name: str) -> None:
    cluster = PLANTS[name]()
    last = cluster.log[-1]
    before = judged(cluster.log[:-1])
    assert before.holds, "what comes before is sound"
    found = [one for one in judged(cluster.log).violations if one.name == name]
    assert [(one.offset, one.record) for one in found[:1]] == [(last.base_offset, type_name_of(last))]
    assert PROPERTIES[name].meaning.split(";")[0] in found[0].sentence or name == "record_version"


def type_name_of(batch: RecordBatch) -> str:
    (record,) = batch.messages()
    return type_of(record.message)


@pytest.mark.parametrize("sample", ["kafka-4.4", "crash-torn", "authorized"])
def test_logs_of_kafka_violate_nothing(sample: str) -> None:
    report = judge_log(open_directory(directory_of(sample)))
    assert (report.violations, report.stopped) == ((), None)
    assert report.from_offset == 0


def test_the_sample_shows_every_property() -> None:
    report = judge_log(open_directory(directory_of("kafka-4.4")))
    assert all(report.judged[name] for name in PROPERTIES)


def test_a_log_below_the_lowest_version_of_kafka_4_is_judged_up_to_there() -> None:
    report = judge_log(open_directory(directory_of("legacy-33")))
    assert report.holds
    assert report.stopped is not None
    assert "metadata.version 4 is below 7" in report.stopped


def test_an_operation_that_spans_batches_is_judged_at_its_end() -> None:
    cluster = ControlledCluster()
    cluster.start(1, 2)
    for name in ("many", "more"):
        cluster.assigned(name, *[(1, 2)] * (FULL_BATCH // 2 + 10))
    cluster.heartbeat(1, want_shut_down=True)
    first, last = cluster.log[-2:]
    assert first.record_count == FULL_BATCH
    assert {type(record.message) for record in last.messages()} == {r.PartitionChangeRecord}
    assert judged(cluster.log).holds
    unfinished = [*cluster.log[:-1], no_op(first.last_offset + 1)]
    found = judged(unfinished).violations
    assert {one.name for one in found} == {"isr_in_service"}
    assert len(found) == last.record_count
    assert judged(cluster.log[:-1]).holds, "nothing says that the operation has ended"


def no_op(offset: int) -> RecordBatch:
    return RecordBatch.of(offset, EPOCH, -1, [ApiMessageAndVersion(r.NoOpRecord(), 0)])


def test_violations_are_kept_up_to_a_thousand_and_counted() -> None:
    cluster = ControlledCluster()
    cluster.start(1, 2)
    cluster.assigned("many", *[(1, 2)] * (MAX_VIOLATIONS + 5))
    epoch = cluster.image.cluster.brokers[2].epoch
    add(cluster, r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, fenced=1))
    report = judged(cluster.log)
    assert (len(report.violations), report.more_violations) == (MAX_VIOLATIONS, 5)
    assert not report.holds


@few_examples
@given(clusters(), st.data())
def test_random_histories_of_a_controller_show_no_bugs_but_those_of_kafka(
    cluster: ControlledCluster, data: st.DataObject
) -> None:
    for _ in range(30):
        try:
            data.draw(st.sampled_from(COMMANDS))(data.draw, cluster)
        except ControllerApiError:
            continue
    ours = [one for one in judged(cluster.log).violations if one.known_bug is None or one.known_bug.mended is not None]
    assert not ours
