"""Addresses that others can't reach are found; those of a cluster on one machine are sound."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.diagnosis.doctor.finding import Finding, Severity
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from tests.cli.made_logs import TIME, directory_of
from tests.cli.running import run
from tests.diagnosis.doctor.clusters import Step, change, cluster, log_of, output_of, register, unfence, uuid
from tests.diagnosis.doctor.made import by_check
from tests.replay.queries.test_quorum_report import elected, no_ops

CRITICAL, WARNING, INFO = Severity


def brokers(*listeners: str) -> list[Step]:
    """Brokers 1, 2, … with the listeners of each: `NAME://host:port,…`."""
    steps: list[Step] = cluster()
    for id_, every in enumerate(listeners, start=1):
        points = []
        for one in every.split(","):
            name, _, place = one.partition("://")
            host, _, port = place.rpartition(":")
            points.append(r.BrokerEndpoint(name=name, host=host, port=int(port), security_protocol=0))
        steps += [(id_, register(id_, id_, end_points=tuple(points))), (id_, unfence(id_, id_))]
    return steps


def findings(folder: Path, steps: Sequence[Step], voters: Sequence[int] = (1,)) -> list[Finding]:
    every = diagnose(log_of(folder, steps, voters)).findings
    return [finding for finding in every if finding.check == "unreachable_endpoints"]


SOUND = {
    "all on one machine": ["P://127.0.0.1:1", "P://127.0.0.1:2", "P://localhost:3"],
    "one broker": ["P://localhost:9092"],
    "each on its host": ["P://a:9092", "P://b:9092", "P://c:9092"],
    "several listeners": ["I://a:9091,E://a.example:9092", "I://b:9091,E://b.example:9092"],
    "one address for clients behind a proxy, by port": ["I://a:1,E://proxy:9001", "I://b:1,E://proxy:9002"],
}


@pytest.mark.parametrize("listeners", SOUND.values(), ids=SOUND)
def test_what_is_sound_is_no_finding(listeners: list[str], tmp_path: Path) -> None:
    assert findings(tmp_path, brokers(*listeners)) == []


FAULTS = {
    "loopback": (["P://a:9092", "P://localhost:9092"], WARNING, ("broker 2",),
                 "P://localhost:9092 can't be reached from other machines"),
    "a loopback address of IPv6": (["P://a:9092", "P://::1:9092"], WARNING, ("broker 2",),
                                   "P://[::1]:9092 can't be reached from other machines"),
    "any address": (["P://a:9092", "P://0.0.0.0:9092"], WARNING, ("broker 2",),
                    "P://0.0.0.0:9092 can't be reached from other machines"),
    "no host": (["P://a:9092", "P://:9092"], WARNING, ("broker 2",), "P://:9092 is no address"),
    "no host at a listener of one machine": (
        ["P://a:9092,L://:1", "P://b:9092,L://b:1"], WARNING, ("broker 1",), "L://:1 is no address"),
    "one broker without a port": (["P://localhost:0"], WARNING, ("broker 1",), "P://localhost:0 is no address"),
    "port 0": (["P://a:9092", "P://b:0"], WARNING, ("broker 2",), "P://b:0 is no address"),
    "the listener that others have on their hosts": (
        ["I://a:1,E://a:2", "I://127.0.0.1:1,E://b:2"], WARNING, ("broker 2",),
        "I://127.0.0.1:1 can't be reached from other machines"),
    "a listener for the machine itself": (
        ["I://a:1,L://localhost:2", "I://b:1,L://localhost:3"], INFO, ("broker 1", "broker 2"),
        "L://localhost:2 is reached from its own machine alone"),
    "one address of two": (["P://a:9092", "P://b:9092", "P://B:9092"], WARNING, ("broker 2", "broker 3"),
                           "P://b:9092 is advertised by brokers 2 and 3"),
    "no listener in common": (["I://a:1", "E://b:1"], WARNING, ("broker 1", "broker 2"),
                              "no listener is common to all: I on broker 1; E on broker 2"),
    "a listener that one lacks": (["I://a:1,E://a:2", "I://b:1"], INFO, ("broker 2",),
                                  "listener E of others is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("listeners", "severity", "things", "reason"), FAULTS.values(), ids=FAULTS)
def test_what_others_cannot_reach_is_found(
    listeners: list[str], severity: Severity, things: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    (finding,) = findings(tmp_path, brokers(*listeners))
    assert (finding.severity, finding.things, finding.groups[0].reason) == (severity, things, reason)
    assert finding.since is not None
    assert things[0].split()[1] in output_of(finding)


def test_a_listener_with_two_protocols_is_found(tmp_path: Path) -> None:
    points = [
        (r.BrokerEndpoint(name="I", host=f"b{id_}", port=9092, security_protocol=protocol),)
        for id_, protocol in ((1, 0), (2, 1), (3, 0))
    ]
    steps = [(id_, register(id_, id_, end_points=some)) for id_, some in enumerate(points, start=1)]
    (finding,) = findings(tmp_path, [*cluster(), *steps, *[(9, unfence(id_, id_)) for id_ in (1, 2, 3)]])
    assert finding.severity is WARNING
    assert finding.groups[0].reason == "listener I is PLAINTEXT on brokers 1 and 3 and SSL on broker 2"


def test_a_fenced_registration_at_the_same_address_may_be_left_over(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, [*brokers("P://a:9092", "P://a:9092"), (9, change(1, 1, fenced=1))])
    assert finding.severity is INFO
    assert finding.groups[0].reason == (
        "P://a:9092 is advertised by brokers 1 and 2, of which one at most is not fenced"
    )


def controller(id_: int, host: str) -> Step:
    endpoint = r.ControllerEndpoint(name="CONTROLLER", host=host, port=9093, security_protocol=0)
    return 5, r.RegisterControllerRecord(controller_id=id_, incarnation_id=uuid(f"c{id_}"), end_points=(endpoint,))


def test_controllers_that_others_cannot_reach_are_found(tmp_path: Path) -> None:
    steps = [*cluster(), controller(1, "c1"), controller(2, "localhost"), controller(3, "c3"), controller(4, "c1")]
    (finding,) = findings(tmp_path, steps, voters=(1, 2, 3))
    assert (finding.severity, finding.things) == (WARNING, ("controller 2",))  # 4 is no voter, and may be gone
    assert "localhost:9093" in output_of(finding)


def test_the_voters_of_a_dynamic_quorum_are_looked_at(tmp_path: Path) -> None:
    batches = [elected(0, 1, 1, 2, 3), *no_ops(3, 5)]
    assert "unreachable_endpoints" not in by_check(diagnose(directory_of(tmp_path / "sound", batches)))
    (change, version, voters) = (record.message for record in batches[0].messages())
    first, *others = voters.voters
    points = tuple(attrs.evolve(one, host="127.0.0.1") for one in first.endpoints)
    record = attrs.evolve(voters, voters=(attrs.evolve(first, endpoints=points), *others))
    batches[0] = RecordBatch.control_of(0, 1, TIME, [change, version, record])
    finding = by_check(diagnose(directory_of(tmp_path / "fault", batches)))["unreachable_endpoints"]
    assert finding.things == ("voter 1",)
    assert "127.0.0.1" in run(*shlex.split(finding.command)[1:], code=3).stdout
