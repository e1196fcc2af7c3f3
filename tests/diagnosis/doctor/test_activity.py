"""What is counted of the sample is what its events say, one by one."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

import kraftlake
from kraftlake.diagnosis.doctor.registration_history import incarnations
from kraftlake.diagnosis.doctor.timeline import Timeline, read_timeline
from kraftlake.replay.reading import chunks
from tests.cli.running import DIRECTORY, run

MIDDLE = 1795247270000
"""A time in the middle of the sample, in epoch ms."""


@cache
def events() -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("events", DIRECTORY, "--json").stdout.splitlines()]


def timeline(window_ms: int) -> Timeline:
    source = kraftlake.open(DIRECTORY)
    return read_timeline(source, source.image(), recent_ms=0, window_ms=window_ms)


@pytest.fixture(params=[False, True], ids=["batch by batch", "in bulk"])
def _any_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is read in either of the two ways there are."""
    for name in ("BULK_FROM", "BULK_SNAPSHOT_FROM"):
        monkeypatch.setattr(chunks, name, 0 if request.param else 1 << 62)


@pytest.mark.usefixtures("_any_way")
def test_leaderships_that_are_lost_are_counted_in_the_window_and_before() -> None:
    activity = timeline(MIDDLE).activity
    lost = [one for one in events() if one["kind"] in ("leader_moved", "leader_lost")]
    recent = Counter(int(one["before"]) for one in lost if one["timestamp"] >= MIDDLE)
    earlier = Counter(int(one["before"]) for one in lost if one["timestamp"] < MIDDLE)
    assert recent.total() > 100 < earlier.total()
    assert (activity.recent.lost_leaderships, activity.earlier.lost_leaderships) == (recent, earlier)


@pytest.mark.usefixtures("_any_way")
def test_replicas_that_leave_an_isr_are_those_of_the_events_but_for_what_was_moved_away() -> None:
    dropped = Counter((one.partition, one.broker) for one in timeline(0).activity.dropouts())
    moved = {
        (one["subject"], one["offset"]): {*json.loads(one["after"])}
        for one in events()
        if one["kind"] in ("reassignment_finished", "reassignment_cancelled", "replicas_changed")
    }
    expected = Counter(
        (one["subject"], broker)
        for one in events()
        if one["kind"] in ("isr_shrank", "isr_changed")
        for broker in {*json.loads(one["before"])} - {*json.loads(one["after"])}
        if broker in moved.get((one["subject"], one["offset"]), {broker})
    )
    assert dropped.total() > 1_000
    assert dropped == expected


def test_brokers_are_lost_and_started_as_the_events_say() -> None:
    registrations = timeline(0).registrations
    fenced = Counter(one["broker"] for one in events() if one["kind"] == "broker_fenced")
    assert {id_: len(registrations.losses(id_)) for id_ in registrations.brokers} == fenced
    started = Counter(one["broker"] for one in events() if one["kind"] == "broker_registered")
    assert {id_: len([*incarnations(states)]) for id_, states in registrations.brokers.items()} == started
    orderly = {id_: sum(loss.orderly for loss in registrations.losses(id_)) for id_ in registrations.brokers}
    assert orderly == Counter(one["broker"] for one in events() if one["kind"] == "broker_in_controlled_shutdown")


def test_elections_of_the_quorum_are_those_of_the_events() -> None:
    elected = [(one["epoch"], int(one["after"])) for one in events() if one["kind"] == "controller_elected"]
    assert [(one.epoch, one.leader) for one in timeline(0).activity.quorum_elections] == elected
