"""Each check finds its trouble on a log that has it, says since when, and is silent on a healthy one."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import attrs
import pytest

from kraftlake.diagnosis.doctor.diagnosis import CHECKS, diagnose
from kraftlake.diagnosis.doctor.finding import Severity
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import NotASourceError, UsageError
from tests.cli.made_logs import TOPIC_ID
from tests.cli.running import fault, run
from tests.diagnosis.doctor.made import (
    BEGIN,
    HEALTHY,
    HOUR,
    batches_of,
    broker,
    by_check,
    change,
    config,
    log_of,
    partition,
    time_of,
)
from tests.protocol.observer.fake_quorum import LED_SINCE, NOW, running
from tests.replay.comparing.odd_quorums import split_brain, trimmed_node
from tests.replay.queries.test_quorum_report import elected, no_ops, node_at

CRITICAL, WARNING, INFO = Severity


class Expected(NamedTuple):
    """What befalls the healthy cluster, and what its check says."""

    befalls: Sequence[Message]
    severity: Severity
    things: Sequence[str]
    since: int | None = BEGIN
    reason: str = ""
    later: int = 0


def acl(principal: str) -> r.AccessControlEntryRecord:
    return r.AccessControlEntryRecord(
        id=TOPIC_ID, resource_type=2, resource_name="foo", pattern_type=3, principal=principal, host="*", operation=3,
        permission_type=3,
    )  # fmt: skip


FENCE_3 = r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1)
MOVE_TO_4 = change(0, replicas=(1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(3,))
EXPECTED: dict[str, tuple[str, Expected]] = {
    "a partition without a leader": (
        "offline_partitions",
        Expected([change(0, leader=-1, isr=(3,)), FENCE_3], CRITICAL, ["foo-0"], BEGIN,
                 "led by 1 before; last in sync: 3 (fenced)"),
    ),
    "too few replicas in sync": (
        "under_min_isr",
        Expected([config("min.insync.replicas", "2"), change(1, isr=(2,))], CRITICAL, ["foo-1"], BEGIN + 1,
                 "1 of 2 in sync; out of sync: 1, 3"),
    ),
    "more replicas asked for than there are": (
        "under_min_isr",
        Expected([config("min.insync.replicas", "9"), change(1, isr=(2, 3))], CRITICAL, ["foo-1"], BEGIN + 1,
                 "2 of 3 in sync; out of sync: 1"),
    ),
    "a replica out of sync, first in the ISR of fewer": (
        "under_replicated",
        Expected([change(0, isr=(1, 2)), change(0, isr=(1,)), FENCE_3], WARNING, ["foo-0"], BEGIN,
                 "out of sync: 2, 3 (fenced)"),
    ),
    "a replica out of sync again": (
        "under_replicated",
        Expected([change(0, isr=(1, 2)), change(0, isr=(1, 2, 3)), change(0, isr=(2, 1))], WARNING, ["foo-0"],
                 BEGIN + 2, "out of sync: 3"),
    ),
    "a reassignment under way": (
        "reassignments",
        Expected([broker(4), MOVE_TO_4], INFO, ["foo-0"], BEGIN + 1, "to 1, 2 and 4; waits for 4 to be in sync"),
    ),
    "a reassignment to a broker that is fenced": (
        "reassignments",
        Expected([broker(4, fenced=True), MOVE_TO_4], WARNING, ["foo-0"], BEGIN + 1,
                 "to 1, 2 and 4; waits for 4 (fenced) to be in sync"),
    ),
    "a reassignment to a broker that is gone": (
        "reassignments",
        Expected([MOVE_TO_4], WARNING, ["foo-0"], BEGIN,
                 "to 1, 2 and 4; waits for 4 (not registered) to be in sync"),
    ),
    "a reassignment that does not end": (
        "reassignments",
        Expected([broker(4), MOVE_TO_4, change(0, isr=(1, 2, 3, 4)), r.NoOpRecord()], WARNING, ["foo-0"], BEGIN + 1,
                 "to 1, 2 and 4; waits for the controller", HOUR),
    ),
    "a leader that has not recovered": (
        "recovering_leaders",
        Expected([change(0, leader=-1, isr=()), change(0, leader=2, isr=(2,), leader_recovery_state=1)], WARNING,
                 ["foo-0"], BEGIN + 1, "led by 2"),
    ),
    "an unclean election": (
        "unclean_elections",
        Expected([change(0, leader=2, isr=(2,), leader_recovery_state=1), change(0, leader_recovery_state=0)],
                 WARNING, ["foo-0"], BEGIN, "broker 2 was elected"),
    ),
    "a fenced broker, whose registration changed meanwhile": (
        "fenced_brokers",
        Expected([FENCE_3, r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, in_controlled_shutdown=1)],
                 WARNING, ["broker 3"], BEGIN, "hosts 2 replicas"),
    ),
    "a broker that is not registered": (
        "unregistered_brokers",
        Expected([r.UnregisterBrokerRecord(broker_id=3, broker_epoch=3)], WARNING, ["broker 3"], BEGIN,
                 "hosts 2 replicas"),
    ),
    "a broker that shuts down": (
        "brokers_shutting_down",
        Expected([r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, in_controlled_shutdown=1)], INFO,
                 ["broker 2"], BEGIN, "hosts 2 replicas"),
    ),
    "a throttle that was left on": (
        "throttles",
        Expected([config("leader.replication.throttled.replicas", "0:1"), config("retention.ms", "5")], WARNING,
                 ["topic foo"], BEGIN, "leader.replication.throttled.replicas=0:1"),
    ),
    "a throttle of a reassignment": (
        "throttles",
        Expected([config("leader.replication.throttled.rate", "9", type_=4, resource="1"), broker(4), MOVE_TO_4], INFO,
                 ["broker 1"], BEGIN, "leader.replication.throttled.rate=9"),
    ),
    "a config that was set": (
        "recent_changes",
        Expected([config("retention.ms", "5")], INFO, ["topic foo"], BEGIN, "retention.ms was set to 5"),
    ),
    "a secret that was set": (
        "recent_changes",
        Expected([config("sasl.jaas.config", "x", type_=4, resource="1")], INFO, ["broker 1"], BEGIN,
                 "sasl.jaas.config was set to (redacted)"),
    ),
    "an ACL that was removed": (
        "recent_changes",
        Expected([acl("User:eve"), r.RemoveAccessControlEntryRecord(id=TOPIC_ID)], INFO, ["User:eve"], BEGIN + 1,
                 "allow read on topic foo from * was removed"),
    ),
    "a partition that only one broker may lead": (
        "one_loss_from_offline",
        Expected([change(0, isr=(2, 3)), change(1, leader=3, isr=(3,))], INFO, ["foo-1"], None,
                 "no other broker than 3 may lead it"),
    ),
    "a partition whose other replicas in sync shut down": (
        "one_loss_from_offline",
        Expected([*(r.BrokerRegistrationChangeRecord(broker_id=id_, broker_epoch=id_, in_controlled_shutdown=1)
                    for id_ in (2, 3)), change(1, leader=1)], INFO, ["foo-0", "foo-1"], None,
                 "no other broker than 1 may lead them"),
    ),
    "a transaction that has not ended": (
        "open_transaction",
        Expected([r.BeginTransactionRecord(name="t"), r.TopicRecord(name="bar", topic_id=TOPIC_ID)], INFO,
                 [f"offset {BEGIN}"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("check", "expected"), EXPECTED.values(), ids=EXPECTED)
def test_a_check_finds_its_trouble(check: str, expected: Expected, tmp_path: Path) -> None:
    diagnosis = diagnose(log_of(tmp_path, *expected.befalls, later=expected.later))
    finding = by_check(diagnosis)[check]
    assert finding.severity is expected.severity
    assert list(finding.things) == expected.things
    if expected.reason:
        assert [group.reason for group in finding.groups] == [expected.reason]
    if expected.since is None:
        assert finding.since is None
    else:
        assert finding.since is not None
        assert finding.since.offset == expected.since
        assert finding.since.timestamp == time_of(expected.since, later=expected.later)
    assert finding.command.startswith("kraftlake ")
    assert finding.helps


def test_a_reassignment_that_is_young_is_not_said_to_last(tmp_path: Path) -> None:
    finding = by_check(diagnose(log_of(tmp_path / "young", broker(4, fenced=True), MOVE_TO_4)))["reassignments"]
    assert finding.sentence == "the reassignment of 1 partition waits for a broker that is not active"
    old = log_of(tmp_path / "old", broker(4, fenced=True), MOVE_TO_4, r.NoOpRecord(), later=HOUR)
    assert by_check(diagnose(old))["reassignments"].sentence == "the reassignment of 1 partition does not end"


def test_of_the_only_broker_it_is_not_said_that_its_loss_takes_everything(tmp_path: Path) -> None:
    alone = [r.UnregisterBrokerRecord(broker_id=id_, broker_epoch=id_) for id_ in (2, 3)]
    assert "one_loss_from_offline" not in by_check(diagnose(log_of(tmp_path, change(0, isr=(1,)), *alone)))


def test_a_state_that_no_controller_leaves_is_diagnosed_without_the_next_loss(tmp_path: Path) -> None:
    """The reassignment that is done with can't be ended: its directories have no place at this metadata.version."""
    odd = [
        r.FeatureLevelRecord(name="metadata.version", feature_level=7),
        attrs.evolve(partition(0, 1, 2, 3), removing_replicas=(3,), directories=(TOPIC_ID,) * 3),
    ]
    log = log_of(tmp_path, *odd)
    found = by_check(diagnose(log))
    assert "reassignments" in found
    assert "one_loss_from_offline" not in found
    assert "log directories" in fault("what-if", log, "--lose-broker", 3)


def test_a_healthy_cluster_has_no_finding(tmp_path: Path) -> None:
    diagnosis = diagnose(log_of(tmp_path))
    assert diagnosis.findings == ()
    assert diagnosis.is_healthy


def test_what_is_over_is_no_finding(tmp_path: Path) -> None:
    over = [
        change(0, isr=(1,), leader=1), FENCE_3,
        r.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=-1),
        change(0, isr=(1, 2, 3)), change(1, leader=-1, isr=(2,)), change(1, leader=2, isr=(2, 3, 1)),
        broker(4), MOVE_TO_4, change(0, replicas=(1, 2, 4), isr=(1, 2, 4), adding_replicas=(), removing_replicas=()),
    ]  # fmt: skip
    assert diagnose(log_of(tmp_path, *over)).findings == ()


def test_what_happened_long_ago_is_no_news(tmp_path: Path) -> None:
    befalls = [config("retention.ms", "5"), change(0, leader=2, isr=(2,), leader_recovery_state=1), change(
        0, isr=(1, 2, 3), leader_recovery_state=0)]  # fmt: skip
    assert set(by_check(diagnose(log_of(tmp_path / "new", *befalls)))) == {"recent_changes", "unclean_elections"}
    assert not diagnose(log_of(tmp_path / "old", *befalls, later=25 * HOUR)).findings


def test_a_partition_without_a_leader_is_reported_once(tmp_path: Path) -> None:
    """It has too few replicas in sync as well, and that goes without saying."""
    befalls = [config("min.insync.replicas", "3"), change(0, leader=-1, isr=(3,)), change(1, isr=(2,))]
    found = by_check(diagnose(log_of(tmp_path, *befalls)))
    assert found["offline_partitions"].things == ("foo-0",)
    assert found["under_min_isr"].things == found["under_replicated"].things == ("foo-1",)


def test_partitions_are_reported_by_cause_and_batch(tmp_path: Path) -> None:
    befalls = [change(0, leader=-1, isr=(1,)), change(1, leader=-1, isr=(2,)), r.UnregisterBrokerRecord(broker_id=1)]
    (finding,) = (one for one in diagnose(log_of(tmp_path, *befalls)).findings if one.check == "offline_partitions")
    assert [(group.reason, group.things) for group in finding.groups] == [
        ("led by 1 before; last in sync: 1 (not registered)", ("foo-0",)),
        ("led by 2 before; last in sync: 2 (not elected)", ("foo-1",)),
    ]
    assert finding.sentence == "2 partitions have no leader"


# the logs


def test_a_record_that_cannot_be_replayed_is_where_knowledge_ends(tmp_path: Path) -> None:
    """What was wrong before it is found all the same."""
    befalls = [change(0, isr=(1,)), change(7, leader=1), change(1, leader=-1, isr=())]
    diagnosis = diagnose(log_of(tmp_path, *befalls))
    found = by_check(diagnosis)
    assert diagnosis.offset == BEGIN
    assert found["log_stops"].severity is CRITICAL
    assert found["log_stops"].sentence.startswith(f"the log can't be replayed from offset {BEGIN + 1} on")
    assert found["log_stops"].things == (f"offset {BEGIN + 1}",)
    assert found["under_replicated"].things == ("foo-0",)
    assert "offline_partitions" not in found
    assert "unsound_log" not in found  # it is the same fault


def test_a_moment_before_a_fault_is_known(tmp_path: Path) -> None:
    log = log_of(tmp_path, change(0, isr=(1,)), change(7, leader=1))
    assert "log_stops" not in by_check(diagnose(log, BEGIN))
    assert "unsound_log" in by_check(diagnose(log, BEGIN))


def test_a_damaged_batch_is_named(tmp_path: Path) -> None:
    log = log_of(tmp_path, *[change(0, isr=(1,))] * 3)
    file = log / "00000000000000000000.log"
    content = bytearray(file.read_bytes())
    content[content.index(b"metadata.version")] ^= 1
    file.write_bytes(content)
    found = by_check(diagnose(log))
    assert "offset 1" in found["log_stops"].sentence
    assert found["log_stops"].command == f"kraftlake verify {log}"


def test_a_snapshot_that_contradicts_the_log_is_named(tmp_path: Path) -> None:
    log = log_of(tmp_path, change(0, isr=(1,)))
    name = f"{BEGIN:020d}-0000000001.checkpoint"
    records = [ApiMessageAndVersion(one, 0) for one in HEALTHY[:-1]]
    write_checkpoint(log / name, records, epoch=1, timestamp=1)
    finding = by_check(diagnose(log))["unsound_log"]
    assert name in finding.things
    assert "not what replaying the log" in finding.sentence


def test_a_torn_tail_is_a_note(tmp_path: Path) -> None:
    log = log_of(tmp_path, change(0, isr=(1, 2, 3)))
    file = log / "00000000000000000000.log"
    file.write_bytes(file.read_bytes()[:-5])
    diagnosis = diagnose(log)
    assert by_check(diagnosis)["torn_tail"].severity is INFO
    assert by_check(diagnosis)["torn_tail"].things == (f"offset {BEGIN}",)
    assert diagnosis.is_healthy


def test_a_log_without_an_image_is_diagnosed_as_far_as_it_goes(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    segment = log / "00000000000000000000.log"
    segment.write_bytes(segment.read_bytes()[:5])
    diagnosis = diagnose(log)
    assert (diagnosis.image, diagnosis.offset, diagnosis.is_healthy) == (None, None, False)
    assert "log_stops" in by_check(diagnosis)


# the quorum


def three(folder: Path) -> list[str]:
    """Three voters; the third is behind."""
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    return [node_at(folder, 1, log), node_at(folder, 2, log), node_at(folder, 3, log[:8])]


def test_a_quorum_that_can_elect_is_healthy(tmp_path: Path) -> None:
    sources = three(tmp_path)
    assert diagnose(sources).is_healthy
    assert diagnose(sources[:2]).is_healthy


def test_one_of_three_voters_says_nothing_of_the_others(tmp_path: Path) -> None:
    diagnosis = diagnose(three(tmp_path)[0])
    (finding,) = diagnosis.findings
    assert (finding.check, finding.severity) == ("quorum_partly_seen", INFO)
    assert finding.things == ("voter 2", "voter 3")


def test_voters_that_are_too_few_cannot_elect(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3, 4, 5), *no_ops(3, 20)]
    found = by_check(diagnose([node_at(tmp_path, 4, log), node_at(tmp_path, 5, log)]))
    assert found["quorum_election"].severity is CRITICAL
    assert found["quorum_election"].things == ("voter 1", "voter 2", "voter 3")
    assert found["lost_commits"].severity is CRITICAL


def test_an_observer_that_goes_further_than_all_voters_is_found(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    sources = [node_at(tmp_path, 1, log[:5]), node_at(tmp_path, 2, log[:5]), node_at(tmp_path, 101, log)]
    assert by_check(diagnose(sources))["lost_commits"].things == ("node 101",)


def test_a_voter_with_another_directory_has_no_vote(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    sources = [node_at(tmp_path, 1, log), node_at(tmp_path, 3, log), node_at(tmp_path, 2, log, directory=9)]
    assert by_check(diagnose(sources))["voter_directory"].things == ("node 2",)


def test_the_tail_of_a_deposed_leader_is_named(tmp_path: Path) -> None:
    start = [elected(0, 1, 1, 2), *no_ops(3, 9)]
    deposed = node_at(tmp_path, 1, start + no_ops(10, 12))
    other = node_at(tmp_path, 2, [*start, elected(10, 2, 1, 2)])
    finding = by_check(diagnose([deposed, other]))["diverged_log"]
    assert finding.severity is WARNING
    why = "1 of 2 voters lacks it, so no majority has it"
    assert finding.sentence.startswith(f"node 1 has another batch at offset 10 than node 2; {why}: ")
    (group,) = finding.groups
    assert (group.things, group.since and group.since.offset) == (("node 1",), 10)
    assert group.reason.startswith("alone offsets 10 to 12 in epoch 1, 0 records besides no-ops")
    assert "nothing in it shows that a quorum committed these" in group.reason


def test_a_second_quorum_is_found_and_none_of_the_logs_is_called_the_wrong_one(tmp_path: Path) -> None:
    sources = split_brain(tmp_path)
    for given in (sources, sources[::-1], sources[:2]):
        diagnosis = diagnose(given)
        found = by_check(diagnosis)
        finding = found["two_histories"]
        assert finding.severity is CRITICAL
        assert (diagnosis.offset, len(diagnosis.image.cluster.brokers) if diagnosis.image else 0) == (37, 3)
        assert [group.things for group in finding.groups[:2]] == [
            ("node 1",), tuple(f"node {n}" for n in (2, 3))[: len(given) - 1],
        ]  # fmt: skip
        assert "brokers 4, 5 and 6 registered there" in finding.groups[0].reason
        assert "no broker is registered there" in finding.groups[1].reason
        assert {one.risk.value for one in finding.helps} == {"safe"}
        assert not {"diverged_log", "lost_commits", "quorum_election"} & found.keys()


def test_a_log_that_was_changed_in_the_middle_is_found(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    changed = [*log[:5], attrs.evolve(log[5], timestamp=1, timestamps=(1,)), *log[6:]]
    finding = by_check(diagnose([node_at(tmp_path, n, changed if n == 2 else log) for n in (1, 2, 3)]))["changed_log"]
    assert (finding.severity, finding.things) == (CRITICAL, ("node 1", "node 3", "node 2"))
    assert "differ at offset 7 (another timestamp), and from offset 8 on they are the same again" in finding.sentence


def test_a_log_that_has_no_offset_in_common_with_the_others_is_noted(tmp_path: Path) -> None:
    log = [elected(0, 1, 1, 2, 3), *no_ops(3, 20)]
    sources = [node_at(tmp_path, 1, log[:5]), trimmed_node(tmp_path, 2, log[9:]), trimmed_node(tmp_path, 3, log[9:])]
    finding = by_check(diagnose(sources))["unplaced_log"]
    assert (finding.severity, finding.things) == (INFO, ("node 1",))


def test_the_furthest_sound_log_is_looked_at(tmp_path: Path) -> None:
    sources = three(tmp_path)
    file = Path(sources[0]) / "__cluster_metadata-0" / "00000000000000000000.log"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    diagnosis = diagnose(sources)
    found = by_check(diagnosis)
    assert diagnosis.offset == 20
    assert found["unsound_log"].command == f"kraftlake verify {sources[0]}"
    assert "log_stops" not in found


def test_a_bundle_and_an_archive_of_several_nodes_are_all_of_them(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    log = batches_of(change(0, isr=(1,)))
    log[0] = elected(0, 1, 1, 2, 3, dynamic=False)
    node_at(bundle, 1, log)
    node_at(bundle, 2, log[:6])
    with tarfile.open(tmp_path / "bundle.tar", "w") as archive:
        archive.add(bundle, "support")
    for source, command in (
        (bundle, bundle / "node-1-None"),
        (tmp_path / "bundle.tar", f"{tmp_path}/bundle.tar --node 1"),
    ):
        diagnosis = diagnose(source)
        assert len(diagnosis.quorum.voting) == 2
        assert diagnosis.offset == BEGIN
        finding = by_check(diagnosis)["under_replicated"]
        assert finding.command.startswith(f"kraftlake events {command}")


# a quorum that runs


def test_a_quorum_whose_voters_fetch_is_healthy() -> None:
    with running() as quorum:
        diagnosis = diagnose(quorum)
    assert diagnosis.findings == ()
    assert diagnosis.is_healthy
    assert (diagnosis.offset, len(diagnosis.quorum.voting)) == (7, 3)


def test_a_voter_that_stopped_fetching_is_found_with_what_it_lacks() -> None:
    with running(n2=(5, NOW - 10_001, NOW - 11_000)) as quorum:
        diagnosis = diagnose(quorum)
        printed = run("doctor", quorum, code=3).stdout
        page = run("doctor", quorum, "--output", "markdown", code=3).stdout
    (finding,) = diagnosis.findings
    assert (finding.check, finding.severity) == ("silent_node", WARNING)
    assert finding.sentence == "voter 2 of 3 does not fetch from leader 0"
    assert [group.reason for group in finding.groups] == ["last fetched 10 s ago, 3 offsets behind"]
    assert finding.since is not None
    assert finding.to_json()["since"] == {"offset": 5, "timestamp": NOW - 10_001}
    assert finding.to_json()["things"] == ["voter 2"]
    assert finding.command == f"kraftlake quorum {quorum}"
    for words in (
        "quorum  3 voters (0, 1, 2), 2 here, led by 0 in epoch 1",
        "voter 1: level, caught up last at 2023-11-14 22:14:20.001Z",
        "voter 2: 3 offsets behind, caught up last at 2023-11-14 22:14:09.001Z",
    ):
        assert words in printed
        assert words.removeprefix("quorum  ") in re.sub(r"\\(.)", r"\1", page)


def test_a_voter_that_never_fetched_from_its_leader_is_silent_since_the_election() -> None:
    with running(n1=(-1, -1, -1), n2=(-1, -1, -1)) as quorum:
        (finding,) = (one for one in diagnose(quorum).findings if one.check == "silent_node")
        printed = run("doctor", quorum, code=3).stdout
    assert "voter 1: has not fetched since this leader was elected" in printed
    assert finding.sentence == "voters 1 and 2 of 3 do not fetch from leader 0"
    assert finding.things == ("voter 1", "voter 2")
    assert finding.groups[0].reason == "has not fetched since the election 60 s ago, 8 offsets behind"
    assert finding.to_json()["since"] == {"offset": 0, "timestamp": LED_SINCE}


@pytest.mark.parametrize(
    "replicas",
    [
        {"n2": (5, NOW - 10_000, NOW - 30_000)},
        {"n4": (3, NOW - 90_000, NOW - 90_000), "n5": (-1, -1, -1)},
        {"n0": (8, LED_SINCE + 5_000, LED_SINCE + 5_000), "n1": (-1, -1, -1), "n2": (8, LED_SINCE, LED_SINCE)},
    ],
    ids=["a voter that is slow", "brokers that were shut down", "a leader that was just elected"],
)
def test_no_voter_is_called_silent_that_is_not(replicas: dict[str, tuple[int, int, int]]) -> None:
    with running(**replicas) as quorum:
        assert diagnose(quorum).findings == ()


def test_addresses_that_are_given_apart_are_those_of_one_quorum() -> None:
    with running() as quorum:
        diagnosis = diagnose(["127.0.0.1:1", *(f"kafka://{address}" for address in quorum.split(","))])
    assert diagnosis.sources == (f"127.0.0.1:1,{quorum}",)
    assert diagnosis.is_healthy


def test_a_directory_beside_its_quorum_is_one_more_copy(tmp_path: Path) -> None:
    with running() as quorum:
        directory = node_at(tmp_path, 1, [*LogSource.open(quorum).batches()][:1])
        (tmp_path / "node-1-None" / "meta.properties").unlink()
        diagnosis = diagnose([directory, quorum])
    assert diagnosis.offset == 7
    assert diagnosis.findings == ()


def test_properties_for_a_quorum_are_refused_for_files_and_named_in_commands(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    config = tmp_path / "client.properties"
    with running(n2=(5, NOW - 20_000, NOW)) as quorum:
        (finding,) = diagnose(quorum, command_config=config).findings
    assert finding.command == f"kraftlake quorum {quorum} --command-config {config}"
    with pytest.raises(UsageError, match="belongs to HOST:PORT of a quorum"):
        diagnose(log_of(tmp_path / "log"), command_config=config)


# the folders


def folders_of(folder: Path, node: int, *names: str, cluster_id: str = "made") -> Path:
    data = folder / f"data-{node}"
    for name in names:
        (data / name).mkdir(parents=True)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node}\n")
    return data


def test_folders_are_held_against_the_image(tmp_path: Path) -> None:
    log, data = log_of(tmp_path / "log"), folders_of(tmp_path, 2, "foo-0", "bar-7")
    (data / "foo-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAw\n")
    found = by_check(diagnose(log, log_dirs=[data]))
    assert found["stray_folders"].things == (str(data / "bar-7"), str(data / "foo-0"))
    assert "AAAAAAAAAAAAAAAAAAAAAw does not exist" in found["stray_folders"].groups[1].reason
    assert (found["missing_folders"].severity, found["missing_folders"].things) == (CRITICAL, ("foo-0", "foo-1"))


def test_folders_as_they_should_be_are_no_finding(tmp_path: Path) -> None:
    log, data = log_of(tmp_path / "log"), folders_of(tmp_path, 2, "foo-0", "foo-1")
    assert not diagnose(log, log_dirs=[data]).findings


def test_folders_of_nobody_and_of_another_cluster_are_refused(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log")
    other = folders_of(tmp_path, 2, "foo-0", cluster_id="other")
    with pytest.raises(UsageError, match="of cluster other, not of cluster made"):
        diagnose(log, log_dirs=[other])
    (other / "meta.properties").unlink()
    with pytest.raises(UsageError, match="does not say which broker"):
        diagnose(log, log_dirs=[other])
    with pytest.raises(NotASourceError, match="no such folder"):
        diagnose(log, log_dirs=[tmp_path / "gone"])


# the list


def test_every_check_has_a_test_here() -> None:
    tests = "".join(file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("test_*checks.py")))
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert [check.name for check in CHECKS if f'"{check.name}"' not in tests] == []


def test_the_commands_are_short_on_a_short_path() -> None:
    on_md = {
        check.name: f"kraftlake {check.command.format(source='md', sources='md', at='', range='')}" for check in CHECKS
    }
    long = {name for name, command in on_md.items() if len(command) > 45}
    assert long == {"missing_folders", "stray_folders"}  # these name the broker and its directories
