"""A log directory that is gone is found, with what lay there and what is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kraftlake.diagnosis.doctor.diagnosis import Diagnosis, diagnose
from kraftlake.diagnosis.doctor.finding import Finding, Severity
from kraftlake.image.topics.directory_id import LOST
from kraftlake.records import metadata_records as r
from tests.cli.made_logs import TOPIC_ID
from tests.cli.running import run
from tests.diagnosis.doctor.clusters import (
    Step,
    change,
    cluster,
    isr,
    log_of,
    output_of,
    partition,
    register,
    unfence,
    uuid,
)
from tests.diagnosis.doctor.made import by_check

HELD = [
    (1, partition(0, 2, directories=["b2"])),
    (1, partition(1, 2, 1, directories=["b2", "a1"])),
    (1, partition(2, 2, 3, directories=["b2", "a3"])),
    (1, partition(3, 2, 1, directories=["a2", "a1"])),
    (1, isr(2, 2)),
]
"""Partitions of broker 2: three in its directory b2, of which one has no other replica, and one no other in sync."""
FAILED = [
    (9, isr(0, 2, leader=-1)),
    (9, isr(1, 1, leader=1)),
    (9, isr(2, 2, leader=-1)),
    (9, change(2, 2, log_dirs=(uuid("a2"),))),
]
"""Directory b2 of broker 2 fails: what the controller writes."""
LOST_AT = 1 + len(cluster(1, 2, 3)) + len(HELD) + len(FAILED) - 1


def diagnosed(folder: Path, *more: Step) -> Diagnosis:
    return diagnose(log_of(folder, [*cluster(1, 2, 3), *HELD, *FAILED, *more]))


def found(diagnosis: Diagnosis) -> Finding:
    return by_check(diagnosis)["offline_directories"]


def reasons(finding: Finding) -> dict[str, tuple[str, ...]]:
    return {group.reason: group.things for group in finding.groups}


def test_a_failed_directory_is_named_with_what_is_left_of_its_replicas(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path)
    finding = found(diagnosis)
    where = f"directory {uuid('b2')} of broker 2"
    assert reasons(finding) == {
        f"{where}: no leader, no other replica is in sync": ("foo-2",),
        f"{where}: the only replica": ("foo-0",),
        f"{where}: others lead": ("foo-1",),
    }
    assert finding.severity is Severity.CRITICAL
    assert (
        finding.sentence == "1 log directory of broker 2 is offline, with 3 replicas: 2 of them without another in sync"
    )
    assert finding.since is not None
    assert finding.since.offset == LOST_AT
    assert str(uuid("b2")) in output_of(finding)


def test_nobody_is_sent_to_start_a_broker_whose_disk_failed(tmp_path: Path) -> None:
    found_here = by_check(diagnosed(tmp_path))
    offline = found_here["offline_partitions"]
    assert [group.reason for group in offline.groups] == ["led by 2 before; last in sync: 2 (log directory is offline)"]
    assert offline.helps[0].action == (
        "Bring back the log directories of broker 2 that are offline, and restart it: 2 partitions may be led from "
        "there. Do not put empty disks in their place before that has failed."
    )
    assert [group.reason for group in found_here["under_replicated"].groups] == [
        "out of sync: 2 (log directory is offline)"
    ]
    assert "Replace them only if" in found_here["under_replicated"].helps[0].action  # the only copy of foo-0 is there
    printed = run("image", tmp_path / "__cluster_metadata-0", "--unavailable-partitions").stdout
    assert "log directory is offline" in printed
    faults = [finding for finding in found_here.values() if finding.severity is not Severity.INFO]
    assert len(faults) == 3
    assert not any("Start the broker" in one.action for finding in faults for one in finding.helps)


def test_a_fenced_broker_that_had_lost_a_directory_is_not_just_to_be_started(tmp_path: Path) -> None:
    """A broker ends itself when its last log directory fails, and can't say so any more."""
    fenced = by_check(diagnosed(tmp_path, (20, change(2, 2, fenced=1))))["fenced_brokers"]
    first, second = fenced.helps
    assert first.action.startswith("Look at the disks of broker 2 before it is started")
    assert [group.reason for group in first.evidence] == [f"log directory {uuid('b2')} failed while its process ran"]
    assert second.action.startswith("Start the broker.")


def test_without_a_partition_in_danger_it_is_a_warning(tmp_path: Path) -> None:
    steps = [*cluster(1, 2), (1, partition(1, 2, 1, directories=["b2", "a1"]))]
    gone = [(9, isr(1, 1, leader=1)), (9, change(2, 2, log_dirs=(uuid("a2"),)))]
    finding = found(diagnose(log_of(tmp_path / "led", [*steps, *gone])))
    assert (finding.severity, finding.things) == (Severity.WARNING, ("foo-1",))
    empty = found(diagnose(log_of(tmp_path / "empty", [*cluster(1, 2), gone[1]])))
    assert (empty.severity, empty.things) == (Severity.WARNING, ("broker 2",))
    assert empty.groups[0].reason.endswith("no replica lay there")


BOTH_FAIL = [
    (1, partition(0, 1, 2, directories=["b1", "b2"])),
    (9, isr(0, leader=-1, eligible_leader_replicas=(1, 2))),
    (9, change(1, 1, log_dirs=(uuid("a1"),))),
    (9, change(2, 2, log_dirs=(uuid("a2"),))),
]
"""The disks of all replicas fail; two may lead."""


def test_where_all_who_may_lead_have_lost_their_disks_no_disk_is_to_be_replaced(tmp_path: Path) -> None:
    finding = found(diagnose(log_of(tmp_path, [*cluster(1, 2, 3), *BOTH_FAIL])))
    assert finding.sentence.endswith("with 2 replicas: 2 of them without another in sync")
    assert finding.helps[0].action == (
        "Keep the disk, and mount it again: the newest records of 1 partition may be on it alone."
    )
    assert not any("replace the disk" in one.action for one in finding.helps)


def test_a_directory_that_came_back_is_no_finding(tmp_path: Path) -> None:
    back = [(20, register(2, 99)), (21, unfence(2, 99)), (22, isr(0, 2, leader=2)), (22, isr(2, 2, 3, leader=2))]
    assert "offline_directories" not in by_check(diagnosed(tmp_path, *back, (23, isr(1, 1, 2))))


def test_an_empty_directory_that_was_taken_out_of_log_dirs_is_no_finding(tmp_path: Path) -> None:
    taken_out = [(5, register(2, 99, log_dirs=(uuid("a2"),))), (6, unfence(2, 99))]
    assert diagnose(log_of(tmp_path, [*cluster(1, 2), *taken_out])).findings == ()


REPLACED = [(20, register(2, 99, log_dirs=(uuid("a2"), uuid("new")))), (21, unfence(2, 99))]
"""Broker 2 starts with another disk in the place of the one that failed."""


def made_anew(number: int, *directories: str, **fields: Any) -> Step:
    """A broker reports the directory in which it has made a replica."""
    return 22, r.PartitionChangeRecord(
        partition_id=number, topic_id=TOPIC_ID, directories=tuple(map(uuid, directories)), **fields
    )


def test_a_disk_that_was_replaced_is_distinguished_from_one_that_is_missing(tmp_path: Path) -> None:
    finding = found(diagnosed(tmp_path, *REPLACED))
    where = f"directory {uuid('b2')} of broker 2, which has {uuid('new')} anew"
    assert {reason.rpartition(":")[0] for reason in reasons(finding)} == {where}
    assert finding.since is not None
    assert finding.since.offset == LOST_AT
    assert [one.action.split(",")[0] for one in finding.helps] == [
        "Keep the disk",
        "The new directory fills from the leaders where others lead. Where none does",
    ]


def test_replicas_that_were_made_anew_without_their_records_are_found(tmp_path: Path) -> None:
    """What a real broker of Kafka 4.4 does: the replicas that others lead fill again, the others have no leader."""
    filled = made_anew(1, "new", "a1", isr=(1, 2))
    diagnosis = diagnosed(tmp_path, *REPLACED, filled, made_anew(0, "new"), made_anew(2, "new", "a3"))
    here = by_check(diagnosis)
    assert "offline_directories" not in here
    finding = here["replaced_directories"]
    assert finding.severity is Severity.CRITICAL
    assert finding.sentence == "2 replicas of broker 2 lost the last directory in sync, and are in an empty one"
    assert reasons(finding) == {
        f"lay in directory {uuid('b2')} of broker 2, and was made anew in {uuid('new')}; no leader": ("foo-0", "foo-2")
    }
    assert finding.since is not None
    assert finding.since.offset == LOST_AT + len(REPLACED) + 2
    assert output_of(finding)
    offline = here["offline_partitions"]
    assert offline.helps[0].action == (
        "Give broker 2 the old disk again: its replicas of 2 partitions were made anew without the records "
        "(replaced_directories). Do not restart it before that has failed: such a replica would lead."
    )
    assert all("which is gone" in group.reason for group in offline.groups)


NEW_1 = [(20, register(1, 98, log_dirs=(uuid("a1"), uuid("new1")))), (21, unfence(1, 98))]


def test_both_replicas_of_a_partition_may_be_made_anew(tmp_path: Path) -> None:
    made = [made_anew(0, "new1", "b2"), made_anew(0, "new1", "new")]
    here = by_check(diagnose(log_of(tmp_path, [*cluster(1, 2, 3), *BOTH_FAIL, *NEW_1, *REPLACED, *made])))
    finding = here["replaced_directories"]
    assert finding.sentence == "2 replicas of brokers 1 and 2 lost the last directory in sync, and are in an empty one"
    assert here["offline_partitions"].helps[0].action.startswith("Give brokers 1 and 2 the old disk again")


def test_a_replica_that_is_made_anew_while_another_may_lead_has_lost_nothing(tmp_path: Path) -> None:
    """As Kafka does: a broker with a new directory was not shut down in order, and is eligible no more."""
    fenced = (10, change(2, 2, fenced=1))
    again = [*NEW_1, (20, isr(0, eligible_leader_replicas=(2,))), made_anew(0, "new1", "b2")]
    here = by_check(diagnose(log_of(tmp_path, [*cluster(1, 2, 3), *BOTH_FAIL[:-1], fenced, *again])))
    assert "replaced_directories" not in here
    assert here["offline_partitions"].helps[0].action.startswith("Start broker 2 with the log directories it had")


def test_a_leader_without_the_records_is_a_warning_for_a_day(tmp_path: Path) -> None:
    led = [made_anew(0, "new"), (30, isr(0, 2, leader=2)), (30, isr(2, 3, leader=3))]
    finding = by_check(diagnosed(tmp_path / "new", *REPLACED, *led))["replaced_directories"]
    assert (finding.severity, finding.things) == (Severity.WARNING, ("foo-0",))
    assert finding.groups[0].reason.endswith("; led again, without what lay there")
    old = diagnosed(tmp_path / "old", *REPLACED, *led, (25 * 3_600, r.NoOpRecord()))
    assert "replaced_directories" not in by_check(old)


def test_a_disk_that_came_back_leaves_a_leader_to_be_elected(tmp_path: Path) -> None:
    """As a real broker does: the replica is back where it lay, and led when the broker is unfenced the next time."""
    back = [made_anew(0, "new"), (30, register(2, 120)), (31, unfence(2, 120)), (32, made_anew(0, "b2")[1])]
    here = by_check(diagnosed(tmp_path, *REPLACED, *back))
    assert not {"replaced_directories", "offline_directories"} & {*here}
    offline = here["offline_partitions"]
    assert [group.reason for group in offline.groups] == ["led by 2 before; last in sync: 2 (not elected)"]
    assert [one.action for one in offline.helps] == [
        "Look at the log of the active controller: broker 2 may lead 2 partitions and was not elected. It elects it "
        "when it is unfenced, and so after a restart."
    ]


def test_a_move_between_directories_that_are_there_is_no_finding(tmp_path: Path) -> None:
    steps = [*cluster(2), (1, partition(0, 2, directories=["b2"])), made_anew(0, "a2")]
    assert "replaced_directories" not in by_check(diagnose(log_of(tmp_path, steps)))


def test_a_replica_in_a_directory_that_the_broker_could_not_name(tmp_path: Path) -> None:
    lost = r.PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, directories=(LOST, uuid("a1")))
    steps = [*cluster(1, 2, 3), *HELD, (5, lost), (5, isr(3, 1, leader=1))]
    finding = found(diagnose(log_of(tmp_path, steps)))
    assert reasons(finding) == {"a directory that broker 2 could not name: others lead": ("foo-3",)}
    assert finding.since is not None
    assert finding.since.offset == 1 + len(cluster(1, 2, 3)) + len(HELD)


def test_a_partition_made_again_with_a_directory_that_nobody_names(tmp_path: Path) -> None:
    again = r.PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=(1, 2), isr=(1, 2), leader=1, directories=(uuid("b1"), LOST)
    )
    made = [(2, r.RemoveTopicRecord(topic_id=TOPIC_ID)), (3, r.TopicRecord(name="foo", topic_id=TOPIC_ID)), (4, again)]
    steps = [*cluster(1, 2, 3), (1, partition(0, 1, 2, directories=["b1", "b2"])), *made]
    finding = found(diagnose(log_of(tmp_path, steps)))
    assert finding.since is not None
    assert finding.since.offset == len(steps)


def test_the_path_is_named_where_a_log_directory_is_given(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", [*cluster(1, 2, 3), *HELD, *FAILED])
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "meta.properties").write_text(f"version=1\ncluster.id=made\nnode.id=2\ndirectory.id={uuid('b2')}\n")
    finding = found(diagnose(log, log_dirs=[disk]))
    assert f"directory {uuid('b2')} ({disk}) of broker 2: the only replica" in reasons(finding)


def test_a_snapshot_alone_has_the_directory_and_no_time(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", [*cluster(1, 2, 3), *HELD, *FAILED])
    snapshot = tmp_path / f"{LOST_AT + 1:020d}-0000000001.checkpoint"
    run("export", log, snapshot)
    finding = found(diagnose(snapshot))
    assert finding.since is None
    assert finding.things == ("foo-2", "foo-0", "foo-1")
    assert output_of(finding)
