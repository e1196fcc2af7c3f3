"""What happens again and again in a window is found, and kept apart from what is usual and from restarts in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.finding import Finding, Severity
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage, LeaderChangeVoter
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.cli.made_logs import TIME, TOPIC_ID, directory_of
from tests.diagnosis.doctor.clusters import (
    Step,
    change,
    cluster,
    fence,
    isr,
    log_of,
    output_of,
    partition,
    register,
    unfence,
    uuid,
)
from tests.diagnosis.doctor.made import by_check

HOUR = 3_600
MINUTE = 60


def pauses(broker: int, *seconds: float) -> list[Step]:
    """A broker is fenced at these seconds, and unfenced ten seconds later: its process runs on."""
    return [step for at in seconds for step in ((at, fence(broker, broker)), (at + 10, unfence(broker, broker)))]


def restarts(broker: int, *seconds: float) -> list[Step]:
    """Restarts in order: a controlled shutdown, then another process."""
    steps: list[Step] = []
    epoch = broker
    for at in seconds:
        steps += [(at, change(broker, epoch, in_controlled_shutdown=1)), (at + 1, fence(broker, epoch))]
        epoch = round(at)
        steps += [(at + 20, register(broker, epoch)), (at + 21, unfence(broker, epoch))]
    return steps


def flapping(folder: Path, *steps: Step, **options: timedelta) -> dict[str, Finding]:
    ordered = sorted([*cluster(1, 2, 3), *steps], key=lambda step: step[0])
    return by_check(diagnose(log_of(folder, ordered), **options))  # type: ignore[arg-type]


def test_a_broker_that_is_fenced_again_and_again_is_found_with_what_is_usual(tmp_path: Path) -> None:
    end = 10 * HOUR
    found = flapping(tmp_path, *pauses(2, HOUR, end - 1_000, end - 500, end - 100), (end, r.NoOpRecord()))
    finding = found["flapping_brokers"]
    assert finding.severity is Severity.WARNING
    assert finding.sentence == "broker 2 was fenced 3 times in the last 1 h of the log"
    (group,) = finding.groups
    assert group.things == ("broker 2",)
    assert group.reason == (
        "fenced 3 times, 0 after a controlled shutdown; 0 starts, 0 lost leaderships, 0 replicas out of sync; usually "
        "0.1 fencings, 0.1 starts"
    )
    assert group.since is not None
    assert group.since.timestamp == TIME + (end - 1_000) * 1_000
    assert "broker 2 is fenced" in output_of(finding)


def test_it_flaps_since_the_first_time_of_a_run(tmp_path: Path) -> None:
    """A run goes on as long as a window has one of its times at least."""
    times = [HOUR * 5, *(HOUR * 7 + 1_500 * number for number in range(8))]
    finding = flapping(tmp_path, *pauses(2, *times))["flapping_brokers"]
    assert finding.since is not None
    assert finding.since.timestamp == TIME + HOUR * 7 * 1_000


def test_restarts_in_order_are_a_note(tmp_path: Path) -> None:
    found = flapping(tmp_path, *restarts(2, 100, 200, 300))
    finding = found["flapping_brokers"]
    assert finding.severity is Severity.INFO
    assert finding.sentence == "broker 2 was fenced 3 times in the 5 min 21 s of the log"
    assert finding.groups[0].reason.startswith("fenced 3 times, 3 after a controlled shutdown; 4 starts")
    assert finding.groups[0].reason.endswith("the log has no earlier time to compare with")


def test_one_restart_of_each_broker_is_no_finding(tmp_path: Path) -> None:
    rolling = [step for broker in (1, 2, 3) for step in restarts(broker, 100 * broker)]
    assert flapping(tmp_path, *rolling) == {}


def test_what_happened_before_the_window_is_no_finding(tmp_path: Path) -> None:
    steps = [*pauses(2, 100, 200, 300), (5 * HOUR, r.NoOpRecord())]
    assert flapping(tmp_path / "hour", *steps) == {}
    assert "flapping_brokers" in flapping(tmp_path / "day", *steps, window=timedelta(days=1))


def drops(*seconds: int) -> list[Step]:
    """A partition, and broker 2 that falls out of sync at these seconds and comes back."""
    steps: list[Step] = [(1, partition(0, 1, 2, 3, directories=["a1", "a2", "a3"]))]
    for at in seconds:
        steps += [(at, isr(0, 1, 3)), (at + 50, isr(0, 1, 3, 2))]
    return steps


def test_a_replica_that_falls_out_of_sync_again_and_again_is_found(tmp_path: Path) -> None:
    finding = flapping(tmp_path, *drops(100, 200, 300, 400, 500))["flapping_replicas"]
    assert finding.severity is Severity.WARNING
    assert finding.sentence == "1 replica of broker 2 fell out of sync again and again in the 9 min 10 s of the log"
    (group,) = finding.groups
    assert group.things == ("foo-0",)
    assert group.reason == "out of sync 5 times on broker 2, which ran; the log has no earlier time to compare with"
    assert output_of(finding).count("foo-0 has 2 no longer in sync") == 5


def test_a_replica_that_does_so_a_few_times_or_all_the_time_is_a_note(tmp_path: Path) -> None:
    few = flapping(tmp_path / "few", *drops(100, 200, 300))["flapping_replicas"]
    assert few.severity is Severity.INFO
    usual = [hour * HOUR + at for hour in range(5) for at in (100, 200, 300, 400, 500)]
    finding = flapping(tmp_path / "usual", *drops(*usual))["flapping_replicas"]
    assert finding.severity is Severity.INFO
    assert finding.groups[0].reason == "out of sync 5 times on broker 2, which ran; usually 6.3 times"


def test_a_replica_whose_broker_was_fenced_each_time_is_explained(tmp_path: Path) -> None:
    steps: list[Step] = [(1, partition(0, 1, 2, 3, directories=["a1", "a2", "a3"]))]
    for at in (100, 200, 300):
        steps += [(at, isr(0, 1, 3)), (at, fence(2, 2)), (at + 10, unfence(2, 2)), (at + 20, isr(0, 1, 3, 2))]
    found = flapping(tmp_path, *steps)
    assert "flapping_brokers" in found
    assert "flapping_replicas" not in found


def test_a_replica_that_was_moved_away_did_not_fall_out_of_sync(tmp_path: Path) -> None:
    steps: list[Step] = [(1, partition(0, 1, 2, directories=["a1", "a2"]))]
    for at in (100, 200, 300):
        away = r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(1,), isr=(1,))
        back = r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, replicas=(1, 2), isr=(1, 2))
        steps += [(at, away), (at + 50, back)]
    assert "flapping_replicas" not in flapping(tmp_path, *steps)


def elections(
    folder: Path, *seconds: int, voters: Sequence[int] = (1, 2, 3), start: bool = False
) -> dict[str, Finding]:
    """The log of a quorum that elects a leader at these seconds, after a start of that controller or not."""
    batches: list[RecordBatch] = []
    named = tuple(LeaderChangeVoter(voter_id=voter) for voter in voters)
    for epoch, at in enumerate(seconds, start=1):
        id_ = voters[epoch % len(voters)]
        leader = LeaderChangeMessage(version=0, leader_id=id_, voters=named)
        batches.append(RecordBatch.control_of(2 * epoch - 2, epoch, TIME + at * 1_000, [leader]))
        level: Message = r.FeatureLevelRecord(name="metadata.version", feature_level=33)
        if start and epoch > 1:
            level = r.RegisterControllerRecord(controller_id=id_, incarnation_id=uuid(f"process-{epoch}"))
        some = [ApiMessageAndVersion(level, 0)]
        batches.append(RecordBatch.of(2 * epoch - 1, epoch, TIME + at * 1_000 + 1, some))
    return by_check(diagnose(directory_of(folder, batches)))


def test_a_quorum_that_elects_again_and_again_is_found(tmp_path: Path) -> None:
    finding = elections(tmp_path, 0, 100, 200, 300)["quorum_elections"]
    assert finding.severity is Severity.WARNING
    assert finding.sentence == (
        "the quorum elected 4 leaders in the 5 min of the log, with 0 starts of controllers; the log has no earlier "
        "time to compare with"
    )
    assert finding.things == ("epoch 1", "epoch 2", "epoch 3", "epoch 4")
    assert finding.groups[1].reason == "controller 3 was elected"
    assert "leads the quorum in epoch 4" in output_of(finding)


def test_elections_that_starts_of_controllers_explain_are_a_note(tmp_path: Path) -> None:
    """A combined node of Kafka 4.4 that is stopped and started in order leaves such a log."""
    finding = elections(tmp_path / "three", 0, 100, 200, 300, 400, start=True)["quorum_elections"]
    assert finding.severity is Severity.INFO
    assert "with 4 starts of controllers" in finding.sentence
    assert elections(tmp_path / "one", 0, 100, 200, 300, voters=(1,))["quorum_elections"].severity is Severity.INFO


def test_a_restart_of_each_controller_is_no_finding(tmp_path: Path) -> None:
    assert "quorum_elections" not in elections(tmp_path, 0, 9 * HOUR, 9 * HOUR + 100, 9 * HOUR + 200)


def test_more_than_usual_is_a_note(tmp_path: Path) -> None:
    end = 10 * HOUR
    steps = [step for broker in (1, 2, 3) for step in pauses(broker, end - 900, end - 500)]
    finding = flapping(tmp_path, *steps, (end, r.NoOpRecord()))["unusual_activity"]
    assert finding.severity is Severity.INFO
    assert [(group.things, group.reason) for group in finding.groups] == [(("fencings",), "6, usually 0.0")]
    assert output_of(finding).count(" is fenced") == 6


def test_a_window_of_no_length_has_nothing_to_compare_with(tmp_path: Path) -> None:
    assert flapping(tmp_path, window=timedelta()) == {}
