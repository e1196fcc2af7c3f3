"""A planned restore: what it goes above, whom it takes for voters, what it refuses and warns of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.image.diff import diff_images
from kraftlake.records.uuid import Uuid
from kraftlake.replay.restore.restore_plan import RestorePlan, plan_restore
from kraftlake.runtime.errors import NotASourceError, OffsetError, UnwritableMetadataError, UsageError
from tests.kafka_files.node.made_broker import CLUSTER, log_of_epochs, make_broker, write_replica
from tests.replay.comparing.odd_quorums import quorum_log
from tests.replay.made_logs import data, log_of, metadata_version, partition, small_log, topic, uuid_of, write_directory
from tests.replay.sample_logs import directory_of

VOTERS = [(3, "c3", 9093), (1, "c1", 9093), (2, "::1", 9093)]
HOMES = {number: Uuid((900 + number).to_bytes(16, "big")) for number in range(10)}


def plan(source: Source, at: int | None = None, **options: Any) -> RestorePlan:
    return plan_restore(source, at, **{"voters": VOTERS, "margin": 100, **options})


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A cluster with a topic whose leader moved twice after offset 2."""
    moves = [partition(1, leader=1), partition(1, leader=2, leader_epoch=1, partition_epoch=1, isr=(2,))]
    batches = log_of([metadata_version(21), topic(1, "foo"), moves[0]], [moves[1]], [topic(2, "later"), partition(2)])
    return kraftlake.open(write_directory(tmp_path / "log", batches))


def broker(tmp_path: Path, number: int, epochs: list[int], **fields: Any) -> Path:
    return make_broker(
        tmp_path / f"broker-{number}", number, directory_id=HOMES[number],
        logs={"foo-0": (uuid_of(1), epochs)}, **fields,
    )  # fmt: skip


def test_offset_and_epoch_go_above_the_source(source: Source) -> None:
    made = plan(source, 2)
    assert made.image.offset + 1 == source.end_offset + 100
    assert made.image.provenance.epoch == source.image().provenance.epoch + 100
    assert made.checkpoint_name == f"{source.end_offset + 100:020d}-{made.image.provenance.epoch:010d}.checkpoint"
    assert (made.at.offset, made.newest_offset) == (2, source.end_offset - 1)
    assert diff_images(source.image(), source.image(2)) == made.lost
    assert json.loads(json.dumps(made.to_json()))["lost"]["topics"]["removed"].keys() == {"later"}


def test_offset_and_epoch_go_above_a_brokers_own_copy_which_may_be_the_newest_state(
    source: Source, tmp_path: Path
) -> None:
    folder = broker(tmp_path, 2, [0, 1])
    batches = [*source.batches(), data(source.end_offset, topic(3, "newest"), epoch=6)]
    copy = write_directory(tmp_path / "copy", batches)
    (copy / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":9,"votedId":-1,"data_version":0}')
    shutil.move(copy, folder)
    made = plan(source, 2, broker_dirs=[folder])
    assert made.image.offset + 1 == source.end_offset + 1 + 100
    assert made.image.provenance.epoch == 9 + 100, "the broker has heard of epoch 9"
    assert made.newest_in == str(folder / "__cluster_metadata-0")
    assert made.to_json()["lost"]["topics"]["removed"].keys() == {"later", "newest"}


def test_a_brokers_copy_of_another_history_is_named_and_not_taken_for_the_newest_state(
    source: Source, tmp_path: Path
) -> None:
    folder = broker(tmp_path, 2, [0, 1])
    second = quorum_log(2, 1, 3, epochs=7, no_ops=9, topics=2)
    shutil.move(write_directory(tmp_path / "copy", second), folder)
    made = plan(source, broker_dirs=[folder])
    assert (made.newest_in, made.newest_offset) == (source.name, source.end_offset - 1)
    assert made.image.offset + 1 == second[-1].last_offset + 1 + 100, "the broker has seen these offsets"
    assert made.image.provenance.epoch == 7 + 100
    path = str(folder / "__cluster_metadata-0")
    (warning,) = (one for one in made.warnings if "two histories" in one)
    assert f"{path}, which its broker has followed, offsets 0 to" in warning
    assert "committed by its own quorum" in warning
    assert made.to_json()["otherHistories"][path]["partsAt"] == 0


def test_a_snapshot_whose_offset_is_unknown_is_restored_above_a_brokers_copy_only(
    source: Source, tmp_path: Path
) -> None:
    source.export(tmp_path / "renamed.checkpoint")
    renamed = kraftlake.open(tmp_path / "renamed.checkpoint", cluster_id=CLUSTER)
    folder = broker(tmp_path, 2, [0, 1])
    for broker_dirs in ((), [folder]):
        with pytest.raises(UsageError, match=r"renamed\.checkpoint is not named .* its offset is unknown, .* give the"):
            plan(renamed, broker_dirs=broker_dirs)
    shutil.move(write_directory(tmp_path / "copy", list(source.batches())), folder)
    made = plan(renamed, broker_dirs=[folder])
    assert made.image.offset + 1 == source.end_offset + 100
    assert made.image.provenance.epoch == source.image().provenance.epoch + 100


def test_the_logs_choose_the_isr_and_name_the_strays(source: Source, tmp_path: Path) -> None:
    folders = [broker(tmp_path, 1, [0, 0, 3]), broker(tmp_path, 2, [0, 0])]
    write_replica(folders[1], "later-0", uuid_of(2), log_of_epochs([0]))
    made = plan(source, 2, broker_dirs=folders)
    restored = made.image.topics.get_partition(uuid_of(1), 0)
    assert restored is not None
    assert (restored.isr, restored.leader_epoch) == ((1,), 103)
    assert made.strays == {2: ("later-0",)}
    assert made.special.lacking == ("foo-0",)
    assert any("1 partition (foo-0) has in-sync replicas whose logs lack records" in one for one in made.warnings)
    assert plan(source, 2).special.lacking == ()


def test_brokers_that_were_not_shown_are_named(source: Source, tmp_path: Path) -> None:
    made = plan(source, broker_dirs=[broker(tmp_path, 1, [0])])
    assert made.special.unseen == ("foo-0",)
    assert any("(foo-0) has in-sync replicas whose logs are not shown" in one for one in made.warnings)


def test_voters_of_a_static_quorum_are_in_the_configuration_alone(source: Source) -> None:
    made = plan(source)
    assert (made.kraft_version, made.voters_record) == (0, None)
    assert [voter.id for voter in made.voters] == [1, 2, 3]
    assert len({voter.directory_id for voter in made.voters}) == 3


def test_voters_of_a_dynamic_quorum_are_in_the_snapshot(source: Source, tmp_path: Path) -> None:
    """A node that is a broker, too, keeps its directory id."""
    folders = [broker(tmp_path, 2, [0, 1])]
    made = plan(source, kraft_version=1, listener="CTL", broker_dirs=folders)
    record = made.voters_record
    assert record is not None
    assert [(voter.voter_id, voter.voter_directory_id) for voter in record.voters] == [
        (voter.id, voter.directory_id) for voter in made.voters
    ]
    assert made.voters[1].directory_id == HOMES[2]
    (endpoint,) = record.voters[1].endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CTL", "::1", 9093)
    feature = record.voters[1].k_raft_version_feature
    assert (feature.min_supported_version, feature.max_supported_version) == (0, 1)


def test_the_sample_keeps_its_kraft_version_and_listener() -> None:
    made = plan(kraftlake.open(directory_of("kafka-4.4")), 458)
    assert (made.kraft_version, made.listener, made.cluster_id) == (0, "CONTROLLER", "VXUoBgBGTaWWfCM4Toybuw")


def test_kraft_version_1_needs_a_metadata_version(tmp_path: Path) -> None:
    old = kraftlake.open(write_directory(tmp_path, small_log()))
    with pytest.raises(UsageError, match=r"kraft\.version 1 needs metadata\.version 3\.9-IV0"):
        plan(old, kraft_version=1)


def test_directories_of_another_cluster_and_voters_that_clash_are_refused(source: Source, tmp_path: Path) -> None:
    other = make_broker(tmp_path / "other", 1, directory_id=HOMES[1], cluster_id="another")
    with pytest.raises(UsageError, match=rf"of cluster another, and .* of cluster {CLUSTER}"):
        plan(source, broker_dirs=[other])
    with pytest.raises(NotASourceError):
        plan(source, broker_dirs=[tmp_path / "nowhere"])
    for voters in ([], [(1, "a", 1), (1, "b", 1)], [(1, "a", 1), (2, "a", 1)]):
        with pytest.raises(UsageError, match="voter"):
            plan(source, voters=voters)


def test_a_source_without_a_cluster_id_takes_that_of_the_directories(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "log", small_log(), cluster_id=None)
    with pytest.raises(UsageError, match="give --cluster-id"):
        plan(kraftlake.open(directory))
    folder = make_broker(tmp_path / "broker", 1, directory_id=HOMES[1])
    assert plan(kraftlake.open(directory), broker_dirs=[folder]).cluster_id == CLUSTER


def test_an_offset_within_a_batch_was_never_a_state(source: Source) -> None:
    with pytest.raises(OffsetError, match=r"Offset 1 lies inside of a batch.*: restore offset 2\."):
        plan(source, 1)
    with pytest.raises(OffsetError, match=r"restore offset 3 or 5\."):
        plan(source, 4)


def test_margins_beyond_kafkas_32_bits_are_refused(source: Source, tmp_path: Path) -> None:
    with pytest.raises(UnwritableMetadataError, match="smaller --margin"):
        plan(source, margin=2**31 - 1)
    later = kraftlake.open(write_directory(tmp_path / "later", [data(0, metadata_version(21), epoch=5)]))
    with pytest.raises(UsageError, match="smaller --margin"):
        plan(later, margin=2**31 - 1)


def test_a_broken_copy_of_a_broker_is_named_and_its_logs_count(source: Source, tmp_path: Path) -> None:
    folder = broker(tmp_path, 1, [0, 7])
    broken = folder / "__cluster_metadata-0"
    broken.mkdir()
    (broken / f"{0:020d}.log").write_bytes(b"\x00" * 11 + b"no batch" * 20)
    made = plan(source, broker_dirs=[folder])
    restored = made.image.topics.get_partition(uuid_of(1), 0)
    assert restored is not None
    assert restored.leader_epoch == 107
