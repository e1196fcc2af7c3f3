"""What a controller does beside answering: snapshots, settings without effect, the end when its lake is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.loader.quorum_state import leader_at
from kraftlake.runtime.errors import LakeError
from kraftlake.server.controller import controller_server
from tests.metadata_log.log_batches import data_batch
from tests.server.controller import wire_requests as w
from tests.server.controller.controllers import PATIENCE, new_lake, started_controller
from tests.waiting import wait_for

SOON = {"metadata_log_max_snapshot_interval_ms": "50"}
NEVER = {"metadata_log_max_snapshot_interval_ms": "0"}
NO_OPS = {"metadata_max_idle_interval_ms": "50"}
"""A log that grows by twenty records a second."""


def snapshots_of(lake: Path) -> list[int]:
    """The ends of the snapshots that the lake holds, but for that of `format`."""
    return [one.end_offset for one in MetadataLog.open(lake).snapshots() if not one.bootstrap]


def test_the_active_controller_alone_makes_snapshots(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    with started_controller(lake, 100, **NEVER, **NO_OPS) as active:
        active.await_active()
        with started_controller(lake, 101, **SOON, controller_quorum_fetch_timeout_ms="10000") as standby:
            wait_for(lambda: 101 in standby.node.view.image.cluster.controllers, "the standby follows")
            end = standby.node.view.image.offset + 10
            wait_for(lambda: standby.node.view.image.offset > end, "no-op records are followed")
            assert snapshots_of(lake) == []
            active.end()
            wait_for(lambda: snapshots_of(lake), "the new active controller makes one")


def test_a_setting_that_nothing_heeds_is_logged(tmp_path: Path) -> None:
    with capture_logs() as logs, started_controller(new_lake(tmp_path / "lake"), num_partitons="3", log_dirs="/x"):
        pass
    (logged,) = [one for one in logs if one["event"] == "setting_without_effect"]
    assert (logged["setting"], logged["why"]) == ("num.partitons", "did you mean num.partitions?")


def test_a_controller_that_starts_again_takes_only_appends_for_those_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = new_lake(tmp_path / "lake")
    MetadataLog.open(lake).claim(100)

    def optimize() -> None:
        commit_path(lake / "log", MetadataLog.open(lake).version + 1).write_text('{"commitInfo":{}}\n')

    def write() -> None:
        log = MetadataLog.open(lake)
        log.append([data_batch(log.end_offset, epoch=log.epoch)], epoch=log.epoch)

    commits = iter([optimize, write])

    def seen(*asked: Any) -> int | None:
        found = leader_at(*asked)
        next(commits)()
        return found

    monkeypatch.setattr(controller_server, "leader_at", seen)
    monkeypatch.setattr(controller_server, "WATCH_SECONDS", 0.3)
    with started_controller(lake) as made:
        assert made.faults == []
        made.await_active()
    with started_controller(lake) as made:
        wait_for(lambda: made.faults, "it ends")
        assert "another process of this id writes" in str(made.faults[0])


def test_it_ends_when_its_lake_can_not_be_read_any_more(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    with started_controller(lake) as made:
        made.await_active()
        log = MetadataLog.open(lake)
        torn = lake / "log" / "_delta_log" / f"{log.version + 40:020}.json"
        torn.write_text("{")
        made.thread.join(PATIENCE)
        (fault,) = made.faults
        assert str(fault).startswith("Controller 100 has ended: the lake can't be read: ")


def test_it_ends_when_another_lake_is_put_in_the_place_of_its_own_and_writes_nothing_to_that(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    with started_controller(lake) as made:
        made.await_active()
        log = MetadataLog.open(new_lake(tmp_path / "another"))
        lake.rename(tmp_path / "moved")
        (tmp_path / "another").rename(lake)
        made.thread.join(PATIENCE)
        (fault,) = made.faults
        assert f"ended: the lake can't be read: {lake}/log is no longer the table that was read there" in str(fault)
    assert MetadataLog.open(lake).version == log.version


def test_its_log_is_followed_into_another_lake(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with started_controller(new_lake(tmp_path / "lake"), **NO_OPS) as made:
        made.await_active()
        made.rpc().ask(w.registration(1))
        end = made.node.controller.read(lambda image: image.offset).result(PATIENCE)
        command = [sys.executable, "-m", "kraftlake", "import", "--follow", made.address, str(copy)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

            def has_all() -> bool:
                assert process.poll() is None
                try:
                    return MetadataLog.open(copy).end_offset > end + 10
                except LakeError:  # it is being made
                    return False

            try:
                wait_for(has_all, "the other lake has what was written before and after")
            finally:
                process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
    followed = list(MetadataLog.open(copy).batches())
    written = list(MetadataLog.open(tmp_path / "lake").batches(0, followed[-1].last_offset))
    assert [(one.base_offset, one.epoch, one.timestamp, one.values) for one in followed] == [
        (one.base_offset, one.epoch, one.timestamp, one.values) for one in written
    ]
