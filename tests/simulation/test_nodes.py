"""Machines: what an operator does where a broker asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from simulator import scheduler as scheduling
from simulator.nodes import BrokerMachine

pytestmark = pytest.mark.usefixtures("time")


@pytest.fixture
def machine() -> BrokerMachine:
    nothing: Any = None
    return BrokerMachine(
        scheduling.active(), nothing, 1, watch=nothing, settings={}, lake="lake", rack="rack"
    )  # fmt: skip


def write_log(machine: BrokerMachine, folder: str, **segments: int) -> None:
    machine.files.make_folder(folder)
    for name, size in segments.items():
        machine.files.open(f"{folder}/{name.removeprefix('at')}.log").append(bytes(size))


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ({"at00": 9, "at20": 5}, {"at00": 50}, "d1"),
        ({"at00": 9}, {"at00": 10}, "d2"),
        ({}, {"at00": 0}, "d2"),
    ],
)
def test_of_two_logs_of_a_replica_the_one_that_ends_earlier_is_removed(
    machine: BrokerMachine, first: dict[str, int], second: dict[str, int], kept: str
) -> None:
    write_log(machine, "d1/one-0", **first)
    write_log(machine, "d2/one-0", **second)
    machine.mend("Broker 1 has ended: d2/one-0 and d1/one-0 are logs of one replica: remove one.")
    assert [name for name in ("d1", "d2") if "one-0" in machine.files.content_names(name)] == [kept]
    machine.files.power_cut()
    assert [name for name in ("d1", "d2") if "one-0" in machine.files.content_names(name)] in ([kept], [])


def test_other_ends_ask_for_nothing(machine: BrokerMachine) -> None:
    write_log(machine, "d1/one-0", at00=9)
    machine.mend("Broker 1 has ended: the lake is gone")
    assert machine.files.content_names("d1") == ["one-0"]
