"""The state of a controller that takes over: the image, and the offset of each broker's registration."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.controller.quorum.embedded import EmbeddedController
from kraftlake.controller.quorum.followed_log import FollowedLog
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.clock import ManualClock
from tests.cli.running import run
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.metadata_log.log_batches import UnsyncedDisk
from tests.replay.loader.test_lake_feed import keep_snapshot


def new_lake(path: Path) -> Path:
    bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(from_feature_level(27)), timestamp=0)
    contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
    MetadataLog.create(path, CLUSTER_ID, "controlled", contents=contents, durability="os")
    return path


def taken_over(followed: FollowedLog) -> dict[int, int]:
    """The offset of each broker's registration, in a controller that takes over."""
    config = ControllerConfig(node_id=1, cluster_id=CLUSTER_ID)
    return followed.take_over(config, 9, clock=ManualClock(), draws=random.Random(1)).state.registration_offsets


def test_the_bootstrap_records_are_those_of_the_lake(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    assert FollowedLog(MetadataLog.open(lake)).bootstrap().metadata_version.level == 27
    bare = MetadataLog.create(tmp_path / "bare", CLUSTER_ID, "controlled")
    assert FollowedLog(bare).bootstrap().metadata_version.level == 33


def test_registrations_are_found_in_the_existing_log_and_in_new_commits(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    followed = FollowedLog(MetadataLog.open(lake))
    assert not followed.catch_up()
    run("brokers", "register", 1, "--unfence", "--lake", lake)
    assert followed.catch_up()
    first = taken_over(followed)
    epoch = followed.loader.image.cluster.brokers[1].epoch
    assert first == {1: epoch}, "an epoch is the offset of the registration"
    run("brokers", "register", 2, "--lake", lake)
    run("brokers", "unregister", 1, "--lake", lake)
    assert followed.catch_up()
    assert taken_over(followed) == taken_over(FollowedLog(MetadataLog.open(lake)))
    assert set(taken_over(followed)) == {2}


@pytest.mark.parametrize("when", ["trimmed", "and cleaned up", "while it reads"])
def test_a_standby_behind_a_trimmed_log_continues_from_a_snapshot(tmp_path: Path, when: str) -> None:
    lake = new_lake(tmp_path / "lake")
    run("brokers", "register", 1, "--unfence", "--lake", lake)
    run("brokers", "register", 2, "--unfence", "--lake", lake)
    run("topics", "create", "gone", "--lake", lake)
    followed = FollowedLog(MetadataLog.open(lake))
    first = followed.loader.image.cluster.brokers[1].epoch
    run("topics", "delete", "gone", "--lake", lake)
    run("topics", "create", "orders", "--lake", lake)
    run("brokers", "unregister", 2, "--lake", lake)
    log = MetadataLog.open(lake)
    keep_snapshot(log, image_at(LakeReader(log), log.end_offset - 1).image)
    snapshot_end = log.end_offset
    run("brokers", "register", 3, "--lake", lake)
    run("topics", "create", "bills", "--lake", lake)
    if when == "while it reads":
        followed.log.refresh()
    policy = UpkeepPolicy(checkpoint_after=1, keep_commits=1, compact_from=100, orphan_age_ms=0, exclusive=True)
    upkeep = Upkeep(lake, policy, disk=UnsyncedDisk())
    upkeep.trim(snapshot_end, stream_lag_ms=0)
    if when != "trimmed":
        upkeep.run(force_checkpoint=True)
        upkeep.vacuum()
    assert followed.catch_up()
    assert not followed.catch_up()
    anew = FollowedLog(MetadataLog.open(lake))
    assert set(followed.loader.image.topics.topics_by_name()) == {"orders", "bills"}
    assert followed.loader.image == anew.loader.image
    third = anew.loader.image.cluster.brokers[3].epoch
    assert taken_over(anew) == {1: snapshot_end - 1, 3: third}
    # what is trimmed and not yet cleaned up is still read from the commits
    assert taken_over(followed) == {1: first if when == "trimmed" else snapshot_end - 1, 3: third}


def test_a_standby_keeps_no_records(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    run("brokers", "register", 1, "--unfence", "--lake", lake)
    followed = FollowedLog(MetadataLog.open(lake))
    run("topics", "create", "orders", "--lake", lake)
    followed.catch_up()
    assert followed.loader.delta.topics_delta is None
    assert followed.loader.image.topics.get_topic("orders") is not None


def test_an_embedded_controller_follows_another_without_waiting(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    first = EmbeddedController(MetadataLog.open(lake), watch_seconds=3_600)
    second = EmbeddedController(MetadataLog.open(lake), watch_seconds=3_600)
    assert (first.epoch, second.epoch) == (1, 2)
    assert second.image.features.metadata_version == from_feature_level(27)
