"""The model of the append protocol can fail: broken on purpose, each part of the protocol is missed within seconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from kraftlake.metadata_log.append.log_file import LogEnd
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import EndOffsetError, FencedEpochError, KraftlakeError, LakeError
from simulator.forgetful_disk import ForgetfulDisk
from tests.metadata_log.append.test_append_model import AppendMachine, FaultyDisk

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
CHECKED = "kraftlake.metadata_log.log.check_claimed"
SEARCH = settings(
    max_examples=300,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=False,
    report_multiple_bugs=False,
    phases=[Phase.generate],  # a counterexample will do, however long
    suppress_health_check=list(HealthCheck),
)


def no_epoch_check(path: object, end: LogEnd, epoch: int, expected_end_offset: int) -> None:
    if expected_end_offset != end.end_offset:
        raise EndOffsetError(expected_end_offset, end.end_offset)


def no_end_offset_check(path: object, end: LogEnd, epoch: int, expected_end_offset: int) -> None:
    if epoch < end.epoch:
        raise FencedEpochError(epoch, end.epoch)
    if epoch > end.epoch:
        raise LakeError("never claimed")


def visible_before_it_is_durable(self: Disk, paths: Sequence[Location]) -> None:
    """The folder that names the commit is synced as ever; the commit and its data file never are."""


def overwriting_link(self: ForgetfulDisk, source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    ForgetfulDisk.link(self, source, target)


MUTATIONS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "no epoch check": lambda patch: patch.setattr(CHECKED, no_epoch_check),
    "no end offset check": lambda patch: patch.setattr(CHECKED, no_end_offset_check),
    "visible before it is durable": lambda patch: patch.setattr(Disk, "fsync_all", visible_before_it_is_durable),
    "a rename in place of a link": lambda patch: patch.setattr(FaultyDisk, "link", overwriting_link),
    "every commit in between is maintenance": lambda patch: patch.setattr(
        "kraftlake.metadata_log.append.log_commit.is_maintenance", lambda commit, before: True
    ),
}


# Counterexamples that are found within a second or two, and those that take ten or more.
RARE = ("no end offset check", "a rename in place of a link", "every commit in between is maintenance")


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(
            name, marks=pytest.mark.skipif(name in RARE and not LONG, reason="make test-long: a longer search")
        )
        for name in MUTATIONS
    ],
)
def test_the_model_finds_out_when_the_protocol_leaves_something_out(
    mutation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTATIONS[mutation](monkeypatch)
    # Lost, doubled, not refused, or torn: what it trips over differs.
    with pytest.raises((AssertionError, KraftlakeError, ValueError)):
        run_state_machine_as_test(AppendMachine, settings=SEARCH)
