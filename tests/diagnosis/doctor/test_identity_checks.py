"""Two processes under one id are distinguished from restarts, moves and moves that were taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.finding import Finding, Severity
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from tests.diagnosis.doctor.clusters import Step, cluster, log_of, output_of, register, unfence, uuid
from tests.diagnosis.doctor.made import by_check

HERE = {"host": "b2.example", "log_dirs": (uuid("here"),)}
THERE = {"host": "other.example", "log_dirs": (uuid("there"),)}


def starts(*of: dict[str, object], processes: str = "") -> list[Step]:
    """Registrations of broker 2, a minute after each other, each of a new process or of those that `processes` name."""
    steps: list[Step] = []
    for number, fields in enumerate(of, start=1):
        process = processes[number - 1] if processes else f"process-{number}"
        epoch = 100 + number
        steps += [(60 * number, register(2, epoch, process=process, **fields)), (60 * number + 1, unfence(2, epoch))]  # type: ignore[arg-type]
    return steps


def found(folder: Path, *steps: Step) -> dict[str, Finding]:
    return by_check(diagnose(log_of(folder, [*cluster(1, 2, 3), *steps])))


def test_two_places_in_turn_are_found_with_what_each_is(tmp_path: Path) -> None:
    finding = found(tmp_path, *starts(HERE, THERE, HERE, THERE))["shared_node_id"]
    assert finding.severity is Severity.CRITICAL
    assert finding.sentence == "two processes take turns as broker 2"
    (group,) = finding.groups
    assert group.reason == (
        "one of two places came back 2 times after the other: other.example:9092, directory "
        f"{uuid('there')} (incarnation {uuid('process-4')}) and b2.example:9092, directory {uuid('here')} "
        f"(incarnation {uuid('process-3')})"
    )
    assert group.since is not None
    assert group.since.timestamp == 1_700_000_000_000 + 180_000
    assert output_of(finding).count("incarnationId") >= 4


def test_a_process_that_registers_again_after_another_has_run_on(tmp_path: Path) -> None:
    finding = found(tmp_path, *starts({}, {}, {}, processes="aba"))["shared_node_id"]
    assert finding.severity is Severity.WARNING  # both name the same directories
    assert finding.groups[0].reason.startswith("a process came back 1 time after the other: ")


@pytest.mark.parametrize(
    "steps",
    [
        starts(HERE, HERE, HERE, HERE),
        starts(HERE, THERE, THERE),
        starts(HERE, {"host": "other.example", "log_dirs": (uuid("here"),)}, HERE),
        starts(*[{"log_dirs": (uuid("a2"), uuid("b2"))}, {"log_dirs": (uuid("a2"),)}] * 4),
        starts(HERE, HERE, processes="aa"),
        starts(HERE, HERE | {"log_dirs": (uuid("here"), uuid("more"))}, HERE | {"log_dirs": (uuid("new"),)}),
    ],
    ids=[
        "restarts",
        "a move",
        "a move that was taken back",
        "a disk that fails at times",
        "one process again",
        "other disks",
    ],
)
def test_what_is_in_order_is_no_finding(steps: list[Step], tmp_path: Path) -> None:
    assert "shared_node_id" not in found(tmp_path, *steps)


def test_one_return_to_the_data_of_before_is_a_note(tmp_path: Path) -> None:
    finding = found(tmp_path, *starts(HERE, THERE, HERE))["shared_node_id"]
    assert finding.severity is Severity.INFO
    assert finding.sentence == "broker 2 went to other log directories and came back"


def test_a_broker_that_is_no_longer_registered_has_a_command_too(tmp_path: Path) -> None:
    gone = (300, r.UnregisterBrokerRecord(broker_id=2, broker_epoch=104))
    finding = found(tmp_path, *starts(HERE, THERE, HERE, THERE), gone)["shared_node_id"]
    assert "broker 2 is no longer registered" in output_of(finding)


def test_what_is_long_over_is_no_finding(tmp_path: Path) -> None:
    over = starts(HERE, THERE, HERE, THERE)
    assert "shared_node_id" not in found(tmp_path, *over, (25 * 3_600, r.NoOpRecord()))


def controller(process: str, host: str) -> Message:
    endpoint = r.ControllerEndpoint(name="CONTROLLER", host=host, port=9093, security_protocol=0)
    return r.RegisterControllerRecord(controller_id=1, incarnation_id=uuid(process), end_points=(endpoint,))


def test_two_controllers_under_one_id_are_found(tmp_path: Path) -> None:
    turns = [(10 * at, controller(process, f"{process}.example")) for at, process in enumerate("abab", start=1)]
    finding = found(tmp_path, *turns)["shared_node_id"]
    assert finding.severity is Severity.WARNING
    assert finding.things == ("controller 1",)
    assert "a.example:9093" in finding.groups[0].reason
    assert "controller 1 has started anew" in output_of(finding)
