"""When a standby claims the log: after silence, sooner where nobody leads, and not where another writes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.metadata_log.delta_table import delta_log
from kraftlake.metadata_log.delta_table.actions import Commit
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_table import SnapshotTable
from kraftlake.metadata_log.storage.location import Location
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.event_queue import FunctionEvent
from tests.controller.quorum.test_quorum_controller import PATIENCE, controller, eventually, topic_names
from tests.server.controller.controllers import new_lake
from tests.waiting import unless_paused, wait_for


def look(made: QuorumController, clock: ManualClock, milliseconds: float) -> None:
    """Let time go by, and have a standby look at the log."""
    clock.advance(milliseconds)
    done = threading.Event()
    made._queue.append(FunctionEvent(made._follow, lambda _: None))
    made._queue.append(FunctionEvent(done.set, lambda _: None))
    assert done.wait(PATIENCE)


def test_a_standby_hurries_when_the_leader_of_the_newest_epoch_resigns_and_not_for_an_earlier_one(lake: Path) -> None:
    clock, others = ManualClock(1_700_000_000_000), MetadataLog.open(lake)
    others.claim(7)
    with controller(lake, clock=clock, at_once=False, quorum_fetch_timeout_ms=2_000) as made:
        assert others.claim(8) == 2
        made.expect_vacancy(1)
        look(made, clock, 0)
        look(made, clock, 500)
        assert not made.is_active
        made.expect_vacancy(2)
        look(made, clock, 0)
        look(made, clock, 500)
        assert made.epoch == 3


def test_a_standby_claims_at_once_when_the_leader_of_the_newest_epoch_has_ended_and_not_for_an_earlier_one(
    lake: Path,
) -> None:
    clock, others = ManualClock(1_700_000_000_000), MetadataLog.open(lake)
    others.claim(7)
    with controller(lake, clock=clock, at_once=False, quorum_fetch_timeout_ms=2_000) as made:
        assert others.claim(8) == 2
        made.expect_vacancy(1, ended=True)
        look(made, clock, 0)
        assert not made.is_active
        made.expect_vacancy(2, ended=True)
        look(made, clock, 0)
        assert made.epoch == 3


def test_of_two_standbys_that_learn_of_the_end_one_claims(lake: Path) -> None:
    MetadataLog.open(lake).claim(7)
    settings = {"quorum_fetch_timeout_ms": 3_600_000}
    with controller(lake, 1, at_once=False, **settings) as one, controller(lake, 2, at_once=False, **settings) as two:
        for made in (one, two):
            made.expect_vacancy(1, ended=True)
        (active,) = wait_for(lambda: [made for made in (one, two) if made.is_active])
        assert eventually(lambda: topic_names(active)) == set()
        assert MetadataLog.open(lake).epoch == 2


def test_a_controller_answers_nothing_after_another_has_claimed_however_late_its_last_commit_was(lake: Path) -> None:
    """The lease of an hour is no excuse: a standby does not wait for it when it takes the controller for dead."""
    with controller(lake, max_idle_interval_ms=None, quorum_fetch_timeout_ms=3_600_000) as made:
        eventually(lambda: topic_names(made))
        end = MetadataLog.open(lake).end_offset
        assert topic_names(made) == set()
        assert MetadataLog.open(lake).end_offset == end, "while nobody claims, an answer needs no commit"
        MetadataLog.open(lake).claim(7)
        with pytest.raises(ControllerApiError) as refused:
            topic_names(made)
        assert refused.value.error is ErrorCode.NOT_CONTROLLER


def test_maintenance_by_others_costs_an_answer_one_commit(lake: Path) -> None:
    with controller(lake, max_idle_interval_ms=None, quorum_fetch_timeout_ms=3_600_000) as made:
        eventually(lambda: topic_names(made))
        end = MetadataLog.open(lake).end_offset
        assert Upkeep(lake, UpkeepPolicy(compact_from=2)).run().compaction.made > 0
        assert [topic_names(made) for _ in range(3)] == [set()] * 3
        assert MetadataLog.open(lake).end_offset == end + 1


@unless_paused(0.5)
def test_a_controller_that_is_to_write_no_no_ops_is_not_deposed_by_a_healthy_standby(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / f"{time.monotonic_ns()}")
    settings = {"max_idle_interval_ms": None, "quorum_fetch_timeout_ms": 1_500}
    with controller(lake, 1, **settings) as first:
        eventually(lambda: topic_names(first))
        with controller(lake, 2, at_once=False, **settings):
            time.sleep(3.2)  # longer than a standby waits
            assert (first.epoch, MetadataLog.open(lake).epoch) == (1, 1)


def test_a_slow_read_of_the_log_is_no_silence(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(1_700_000_000_000)
    assert MetadataLog.open(lake).claim(7) == 1
    with controller(lake, clock=clock, at_once=False, quorum_fetch_timeout_ms=1_000) as made:
        catch_up = made._followed.catch_up

        def slow() -> bool:
            found = catch_up()
            clock.advance(5_000 if found else 0)
            return found

        monkeypatch.setattr(made._followed, "catch_up", slow)
        assert MetadataLog.open(lake).claim(7) == 2
        for _ in range(3):
            look(made, clock, 20)
        assert not made.is_active
        look(made, clock, 2_000)
        assert made.epoch == 3


@pytest.mark.parametrize("by", ["a claim", "an append"])
def test_a_standby_does_not_claim_a_log_that_goes_on_behind_what_it_has_seen(
    lake: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    clock, others = ManualClock(1_700_000_000_000), MetadataLog.open(lake)
    epoch = others.claim(7)
    claim, asked = MetadataLog.claim, list[int]()

    def overtaken(log: MetadataLog, node_id: int, **options: Any) -> int:
        asked.append(node_id)
        if by == "a claim":
            claim(others, 8)
        else:
            batch = RecordBatch.of(others.end_offset, epoch, 0, [ApiMessageAndVersion(r.NoOpRecord(), 0)])
            others.append([batch], epoch=epoch)
        return claim(log, node_id, **options)

    with controller(lake, clock=clock, at_once=False, quorum_fetch_timeout_ms=1_000) as made:
        monkeypatch.setattr(MetadataLog, "claim", overtaken)
        look(made, clock, 2_000)
        assert asked == [1]
        for _ in range(3):
            look(made, clock, 20)
        assert (asked, made.is_active) == ([1], False)
        monkeypatch.setattr(MetadataLog, "claim", claim)
        look(made, clock, 2_000)
        assert made.is_active


def test_a_claim_reads_none_of_what_the_standby_has_followed_again(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, others = ManualClock(1_700_000_000_000), MetadataLog.open(lake, durability="os")
    epoch = others.claim(7)
    read_commit, asked = delta_log.read_commit, list[int]()

    def noted(table: Location, version: int) -> Commit | None:
        if table.name == "log":
            asked.append(version)
        return read_commit(table, version)

    with controller(lake, clock=clock, at_once=False, quorum_fetch_timeout_ms=1_000) as made:
        for _ in range(20):
            others.append(
                [RecordBatch.of(others.end_offset, epoch, 0, [ApiMessageAndVersion(r.NoOpRecord(), 0)])], epoch=epoch
            )
        look(made, clock, 20)
        monkeypatch.setattr(delta_log, "read_commit", noted)
        look(made, clock, 2_000)
        assert made.epoch == 2
    assert min(asked) > others.version


def test_a_claim_looks_at_no_snapshot_where_the_log_has_begun(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with controller(lake) as made:
        eventually(lambda: topic_names(made))
        looked = list[Path]()
        monkeypatch.setattr(SnapshotTable, "open", lambda path, _: looked.append(path))
        made.resign().result(PATIENCE)
        assert eventually(lambda: topic_names(made)) == set()
        assert (made.epoch, looked) == (2, [])
