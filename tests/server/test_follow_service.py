"""Many clusters in one process: each is followed, and the trouble of one is no other's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.uuid import Uuid
from kraftlake.server import cluster_follower
from kraftlake.server.follow_config import ClusterConfig, FollowConfig
from tests.replay.made_logs import topic
from tests.server.fake_clusters import FakeCluster, small_log
from tests.server.services import following
from tests.waiting import PATIENCE, wait_for

OFFLINE = r.PartitionChangeRecord(partition_id=0, topic_id=topic(0).topic_id, leader=-1)
OUT_OF_SYNC = r.PartitionChangeRecord(partition_id=0, topic_id=topic(1).topic_id, isr=(1,))
FENCED = r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1)
MIN_ISR = r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")


@contextmanager
def clusters(count: int, log: Sequence[RecordBatch] | None = None) -> Iterator[list[FakeCluster]]:
    with ExitStack() as stack:
        made = [FakeCluster(log or small_log(), f"cluster-of-follow-{number:04}") for number in range(count)]
        for cluster in made:
            stack.enter_context(cluster.serving())
        yield made


def config_of(fakes: Sequence[FakeCluster], folder: Path, *, tables: bool = False) -> FollowConfig:
    return FollowConfig(
        clusters=tuple(
            ClusterConfig(name=f"c{number}", bootstrap=fake.bootstrap, lake=str(folder / f"c{number}"), tables=tables)
            for number, fake in enumerate(fakes)
        )
    )


def log_in(lake: Path) -> list[RecordBatch]:
    return list(MetadataLog.open(lake).batches())


def test_one_cluster_is_killed_and_comes_back_while_four_go_on(tmp_path: Path) -> None:
    with clusters(5) as fakes, following(config_of(fakes, tmp_path)) as scraped:
        wait_for(lambda: sum(scraped.value("kraftlake_follow_up", f"c{n}") or 0 for n in range(5)) == 5)
        fakes[2].dead = True
        wait_for(lambda: scraped.state("c2") == "waiting")
        for fake in fakes:
            fake.append(OFFLINE)
            fake.append(MIN_ISR)
            fake.append(OUT_OF_SYNC, FENCED)
        offline = "kafka_controller_kafkacontroller_offlinepartitionscount"
        for name in ("c0", "c1", "c3", "c4"):
            wait_for(lambda name=name: scraped.value("kafka_controller_kafkacontroller_fencedbrokercount", name) == 1)
            assert scraped.value("kraftlake_follow_up", name) == 1
            assert scraped.value(offline, name) == 1
            assert scraped.value("kraftlake_follow_under_min_isr_partitions", name) == 1
            assert scraped.value("kraftlake_follow_lag_offsets", name) == 0
            assert scraped.value("kraftlake_follow_last_offset", name) == fakes[0].end_offset - 1
            assert scraped.value("kraftlake_follow_leader_epoch", name) == 1
            assert scraped.value("kraftlake_follow_reconnects", name) == 0
            assert 0 <= (scraped.value("kraftlake_follow_lag_seconds", name) or -1) < PATIENCE
        assert scraped.value("kraftlake_follow_up", "c2") == 0
        assert scraped.value(offline, "c2") == 0
        fakes[2].dead = False
        wait_for(lambda: scraped.value(offline, "c2") == 1)
        wait_for(lambda: scraped.state("c2") == "following")
        assert (scraped.value("kraftlake_follow_reconnects", "c2") or 0) > 0
    for number, fake in enumerate(fakes):
        log = MetadataLog.open(tmp_path / f"c{number}")
        assert (log.end_offset, log.committed_to, log.cluster_id) == (fake.end_offset, fake.end_offset, fake.cluster_id)


def test_a_lake_of_another_log_is_left_alone_and_no_one_elses_trouble(tmp_path: Path) -> None:
    with clusters(2) as fakes:
        with following(config_of(fakes, tmp_path)) as scraped:
            wait_for(lambda: scraped.state("c0") == scraped.state("c1") == "following")
        before = log_in(tmp_path / "c0")
    with clusters(2, small_log(3)) as fakes, following(config_of(fakes[::-1], tmp_path)) as scraped:
        wait_for(lambda: scraped.state("c0") == scraped.state("c1") == "stopped")
    assert log_in(tmp_path / "c0") == before


def test_a_cluster_that_lost_what_the_lake_lacks_stops_alone(tmp_path: Path) -> None:
    with clusters(2) as fakes:
        config = config_of(fakes, tmp_path)
        with following(config) as scraped:
            wait_for(lambda: scraped.state("c0") == scraped.state("c1") == "following")
        fakes[0].delete_log_and_go_on()
        fakes[1].append(OFFLINE)
        with following(config) as scraped:
            wait_for(lambda: scraped.state("c0") == "stopped")
            wait_for(lambda: scraped.value("kraftlake_follow_last_offset", "c1") == fakes[1].end_offset - 1)
            assert scraped.value("kraftlake_follow_up", "c0") == 0


def test_a_lake_that_can_not_be_written_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_follower, "_FIRST_PAUSE", 0.05)
    (tmp_path / "c0").write_text("in the way")
    with clusters(2) as fakes, following(config_of(fakes, tmp_path)) as scraped:
        wait_for(lambda: scraped.state("c0") == "retrying" and scraped.state("c1") == "following")
        (tmp_path / "c0").unlink()
        wait_for(lambda: scraped.state("c0") == "following")
        assert (scraped.value("kraftlake_follow_restarts", "c0") or 0) >= 1


def test_a_cluster_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    with clusters(2) as fakes:
        fakes[0].dead = True
        with following(config_of(fakes, tmp_path)) as scraped:
            wait_for(lambda: scraped.state("c0") == "waiting" and scraped.state("c1") == "following")
            assert scraped.value("kraftlake_follow_lag_seconds", "c0") is None
            fakes[0].dead = False
            wait_for(lambda: scraped.state("c0") == "following")
    assert log_in(tmp_path / "c0") == log_in(tmp_path / "c1")


def test_a_log_that_can_not_be_replayed_is_followed_and_not_counted(tmp_path: Path) -> None:
    with clusters(1) as (fake,), following(config_of([fake], tmp_path)) as scraped:
        wait_for(lambda: scraped.value("kafka_controller_kafkacontroller_globaltopiccount", "c0") == 2)
        fake.append(r.RemoveTopicRecord(topic_id=Uuid(b"there is no such")))
        wait_for(lambda: scraped.value("kraftlake_follow_last_offset", "c0") == fake.end_offset - 1)
        wait_for(lambda: scraped.value("kafka_controller_kafkacontroller_globaltopiccount", "c0") is None)
        assert scraped.state("c0") == "following"


def test_tables_are_kept_up_in_turn(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    def leaders(lake: Path) -> list[int]:
        table = DeltaTable(lake / "partition_history").to_pyarrow_table(columns=["leader"])
        return sorted(table.column("leader").to_pylist())

    with clusters(2) as fakes, following(config_of(fakes, tmp_path, tables=True), upkeep_seconds=0.2) as scraped:
        wait_for(lambda: scraped.state("c0") == scraped.state("c1") == "following")
        fakes[1].append(OFFLINE)
        for name, expected in (("c0", [1, 1]), ("c1", [-1, 1, 1])):
            wait_for((tmp_path / name / "partition_history" / "_delta_log" / f"{0:020}.json").exists)
            wait_for(lambda name=name, expected=expected: leaders(tmp_path / name) == expected)
    assert MetadataLog.open(tmp_path / "c0").snapshots()
