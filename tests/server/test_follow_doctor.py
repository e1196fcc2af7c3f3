"""Doctor's checks beside followers: after changes, at a bounded cost, as series and as notices."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import attrs
import pytest
from structlog.testing import capture_logs

from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.records import metadata_records as r
from kraftlake.runtime.clock import SystemClock
from kraftlake.server import follow_doctor
from kraftlake.server.cluster_follower import ClusterFollower
from kraftlake.server.follow_config import ClusterConfig, FollowConfig
from kraftlake.server.follow_doctor import FollowDoctor
from kraftlake.server.notices.config import NotifyConfig
from tests.replay.made_logs import topic
from tests.server.fake_clusters import FakeCluster, small_log
from tests.server.notices.url_server import serving
from tests.server.services import following
from tests.server.test_follow_service import OFFLINE
from tests.waiting import wait_for

OFFLINE_SERIES = 'kraftlake_doctor_finding{check="offline_partitions",cluster="c",severity="critical"}'
BACK = r.PartitionChangeRecord(partition_id=0, topic_id=topic(0).topic_id, leader=1)


def test_a_finding_is_a_series_and_a_notice_when_it_appears_and_when_it_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_doctor, "SHARE", 1.0)
    monkeypatch.setitem(follow_doctor.FollowDoctor.__init__.__kwdefaults__, "look", 0.05)
    cluster = FakeCluster(small_log(), "cluster-of-follow-0001")
    with cluster.serving(), serving(200) as server:
        config = FollowConfig(
            clusters=(ClusterConfig(name="c", bootstrap=cluster.bootstrap, lake=str(tmp_path / "lake")),),
            notify=NotifyConfig(url=f"http://127.0.0.1:{server.port}/", queue=str(tmp_path / "queue")),
        )
        with following(config) as scraped:
            cluster.append(OFFLINE)
            wait_for(lambda: scraped().get(OFFLINE_SERIES) == 1)
            cluster.append(BACK)
            wait_for(lambda: "kraftlake_doctor_checked_offset" in str(scraped()) and OFFLINE_SERIES not in scraped())
            wait_for(lambda: [one for one in server.taken if names_offline_partitions(one, "cleared")])
    appeared = [one for one in server.taken if names_offline_partitions(one, "appeared")]
    assert len(appeared) == 1
    assert appeared[0]["cluster"] == "c"
    assert appeared[0]["appeared"][0]["things"] == ["topic-0-0"]


def names_offline_partitions(notice: dict[str, Any], how: str) -> bool:
    return any(one["check"] == "offline_partitions" for one in notice[how])


def follower(name: str, changed_to: int = -1) -> ClusterFollower:
    config = ClusterConfig(name=name, bootstrap="127.0.0.1:1", lake=f"/lakes/{name}")
    made = ClusterFollower(config, stop=threading.Event(), clock=SystemClock())
    made.status.changed_to = changed_to
    return made


@attrs.define
class Runs:
    """Ends a doctor after some looks; each check takes a second."""

    looks: int
    checked: list[str] = attrs.field(factory=list)
    pauses: list[float] = attrs.field(factory=list)
    time: float = 0.0
    fails: bool = False

    def find(self, lake: str) -> list[dict[str, Any]]:
        self.checked.append(lake)
        if self.fails:
            raise OSError(28, "No space left on device")
        return []

    def wait(self, seconds: float) -> bool:
        self.time += seconds
        self.pauses.append(seconds)
        return len(self.pauses) > self.looks

    def doctor(self, *followers: ClusterFollower) -> FollowDoctor:
        return FollowDoctor(followers, (), stop=self, find=self.find, now=lambda: self.time, look=1.0)  # type: ignore[arg-type]


def test_only_what_has_changed_is_checked_and_once() -> None:
    runs = Runs(20)
    runs.doctor(follower("a", 5), follower("b"), follower("c", 0)).run()
    assert runs.checked == ["/lakes/a", "/lakes/c"]


def test_a_cluster_without_changes_is_checked_again_within_the_hour_that_ages_count_in() -> None:
    runs = Runs(4000)
    runs.doctor(follower("a", 5)).run()
    assert len(runs.checked) == 2


def test_a_check_that_fails_is_counted_and_waits_for_the_next_change() -> None:
    runs, one = Runs(10, fails=True), follower("a", 5)
    with capture_logs() as logs:
        runs.doctor(one).run()
    assert (one.status.check_faults, one.status.findings) == (1, None)
    assert [(log["event"], log["reason"]) for log in logs] == [("not_checked", "No space left on device")]


def test_the_pause_after_a_check_bounds_its_share_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = iter([1.0, 3.0])
    monkeypatch.setattr(follow_doctor.time, "thread_time", lambda: next(cpu))
    runs = Runs(2)
    runs.doctor(follower("a", 5)).run()
    assert runs.pauses[1] == pytest.approx(2.0 * (1 / follow_doctor.FIRST_SHARE - 1))


def test_checks_at_a_bounded_cost_find_what_all_checks_find(tmp_path: Path) -> None:
    from tests.cli.running import DIRECTORY

    def found(thorough: bool) -> list[tuple[str, str]]:
        return [(one.check, one.severity.word) for one in diagnose(DIRECTORY, thorough=thorough).findings]

    assert found(False) == found(True)
    assert found(True)
