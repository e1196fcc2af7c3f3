"""The work on lakes that are followed into."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepReport
from kraftlake.records import metadata_records as r
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.server import lake_worker
from kraftlake.server.follow_config import ClusterConfig, FollowConfig
from tests.replay.made_logs import partition, topic
from tests.server.fake_clusters import FakeCluster, small_log
from tests.server.services import following
from tests.waiting import wait_for


def test_a_lake_gets_a_snapshot_as_its_log_grows_but_none_within_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_worker, "SNAPSHOT_EVERY", 10)
    cluster = FakeCluster(small_log(), "cluster-of-follow-0001")
    with cluster.serving():
        config = ClusterConfig(name="c", bootstrap=cluster.bootstrap, lake=str(tmp_path / "lake"))
        with following(FollowConfig(clusters=(config,)), upkeep_seconds=0.05) as scraped:
            wait_for(lambda: scraped.state("c") == "following")
            cluster.append(r.BeginTransactionRecord(name="a long one"))
            for number in range(5, 12):
                cluster.append(topic(number), partition(number))
            wait_for(lambda: scraped.value("kraftlake_follow_last_offset", "c") == cluster.end_offset - 1)
            assert not MetadataLog.open(tmp_path / "lake").snapshots()
            cluster.append(r.EndTransactionRecord())
            wait_for(lambda: MetadataLog.open(tmp_path / "lake").snapshots())
    (snapshot,) = MetadataLog.open(tmp_path / "lake").snapshots()
    reader = LakeReader(MetadataLog.open(tmp_path / "lake"))
    at = snapshot.end_offset - 1
    assert at == cluster.end_offset - 1
    assert (
        image_at(reader, at, from_snapshot=True).image.to_json()
        == image_at(reader, at, from_snapshot=False).image.to_json()
    )


def test_a_fault_in_one_lake_is_logged_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster(small_log(), "cluster-of-follow-0001")
    lake = tmp_path / "lake"
    with cluster.serving():
        config = ClusterConfig(name="c", bootstrap=cluster.bootstrap, lake=str(lake), tables=True)
        with following(FollowConfig(clusters=(config,)), upkeep_seconds=3600.0) as scraped:
            wait_for(lambda: scraped.state("c") == "following")
        (lake / "events").write_text("in the way")
        with following(FollowConfig(clusters=(config,)), upkeep_seconds=0.05) as scraped:
            wait_for(lambda: "tables_failed" in capsys.readouterr().err)
            (lake / "events").unlink()
            wait_for((lake / "events" / "_delta_log").exists)


def test_upkeep_waits_until_enough_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[str] = Counter()

    class Counted(Upkeep):
        def run(self, *, force_checkpoint: bool = False) -> UpkeepReport:
            done["upkeeps"] += 1
            return super().run(force_checkpoint=force_checkpoint)

    monkeypatch.setattr(lake_worker, "Upkeep", Counted)
    monkeypatch.setattr(lake_worker, "UPKEEP_COMMITS", 4)
    monkeypatch.setattr(lake_worker, "collect_garbage", lambda: done.update(["rounds"]))
    cluster = FakeCluster(small_log(), "cluster-of-follow-0001")
    with cluster.serving():
        config = ClusterConfig(name="c", bootstrap=cluster.bootstrap, lake=str(tmp_path / "lake"))
        with following(FollowConfig(clusters=(config,)), upkeep_seconds=0.02) as scraped:
            for number in range(10, 20):
                cluster.append(topic(number), partition(number))
                end = cluster.end_offset - 1
                wait_for(lambda end=end: scraped.value("kraftlake_follow_last_offset", "c") == end)  # type: ignore[misc]
            wait_for(lambda: done["upkeeps"] > 1)
            rounds_before = done["rounds"]
            wait_for(lambda: done["rounds"] > rounds_before + 20)
    assert done["upkeeps"] <= 1 + MetadataLog.open(tmp_path / "lake").version // 4
