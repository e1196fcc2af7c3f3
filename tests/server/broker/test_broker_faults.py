"""A broker of ours in a real cluster whose leaders, controllers and disks fail, and which is killed itself."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as ClientPartition

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.file_names import META_PROPERTIES
from kraftlake.kafka_files.node.meta_properties import read_properties
from kraftlake.replica_manager.logs.disk.log_directory import HIGH_WATERMARKS
from tests.at_least_one import at_least_one
from tests.interop.restored_nodes import Record, consumed
from tests.server.broker.broker_process import BrokerProcess
from tests.server.broker.cluster import BROKERS, Cluster, started_cluster
from tests.server.broker.load import Load, write
from tests.server.broker.on_disk import bytes_of, check_with_kafka, checkpoint, folder_of, state_of
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: a cluster of five nodes"),
]
KILLS = 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def elect(cluster: Cluster, kind: ElectionType, names: Sequence[TopicPartition]) -> None:
    wanted = [ClientPartition(name.topic, name.partition) for name in names]
    cluster.administer(lambda admin: {0: admin.elect_leaders(kind, wanted)})


def await_same(cluster: Cluster, directories: Sequence[Path], names: Sequence[TopicPartition]) -> None:
    """Wait until replicas have the bytes of those of both real brokers."""
    for name in names:
        real = [[cluster.nodes[id_].log_directory] for id_ in BROKERS]
        wait_for(
            lambda: len({bytes_of(replica, name) for replica in (directories, *real)}) == 1,  # noqa: B023
            f"all replicas of {name} have the same bytes",
        )


def check_as_follower(cluster: Cluster, broker: BrokerProcess, follower: int, names: Sequence[TopicPartition]) -> None:
    """Once stopped, both have the same bytes and state: our broker, and the real one that follows the same leader."""
    node = cluster.nodes[follower]
    await_same(cluster, broker.paths, names)
    for directories in (broker.paths, [node.log_directory]):
        wait_for(
            lambda: all(_high_watermark(directories, name) == _end(cluster, name) for name in names),  # noqa: B023
            "the high watermark is that of the leader",
        )
    assert broker.stop() == 0
    node.stop()
    for name in names:
        assert state_of(broker.paths, name) == state_of([node.log_directory], name), name
    check_with_kafka(cluster, broker.paths, names)
    node.start()
    broker.check_sound()


def _high_watermark(directories: Sequence[Path], name: TopicPartition) -> int:
    return checkpoint(directories, HIGH_WATERMARKS).get(name, -1)


def _end(cluster: Cluster, name: TopicPartition) -> int:
    return _high_watermark([cluster.nodes[cluster.leader(name)].log_directory], name)


def check_kept(cluster: Cluster, topic: str, acked: Sequence[Record], partitions: int) -> None:
    assert set(acked) <= consumed(cluster.bootstrap, topic, acked, partitions)


def test_it_keeps_what_is_committed_while_leaders_change_and_are_killed(cluster: Cluster) -> None:
    broker = cluster.ours(7)
    broker.start()
    names = cluster.create("moved", [1, 2, 7], [1, 2, 7], min_insync_replicas=2)
    cluster.await_isr({1, 2, 7}, *names)
    with Load(cluster.bootstrap, names) as load:
        for victim in (1, 2, 1, 2):
            load.await_more()
            cluster.nodes[victim].kill()
            load.await_more()
            cluster.nodes[victim].start()
            cluster.await_isr({1, 2, 7}, *names)
            elect(cluster, ElectionType.PREFERRED, names)
            wait_for(lambda: all(cluster.leader(name) == 1 for name in names), "1 leads again")
        cluster.nodes[1].stop()
        load.await_more()
        cluster.nodes[1].start()
        cluster.await_isr({1, 2, 7}, *names)
        elect(cluster, ElectionType.PREFERRED, names)
        load.await_more()
    check_kept(cluster, "moved", load.acked, len(names))
    assert len({epoch for epoch, _ in state_of(broker.paths, names[0]).epochs}) > 5
    check_as_follower(cluster, broker, 2, names)


def test_it_keeps_what_is_committed_though_it_is_killed_forty_times(cluster: Cluster) -> None:
    """Four brokers in turn, at any moment of their lives; most of them in the ISR."""
    chance = random.Random(4)
    ids = (21, 22, 23, 24)
    brokers = [cluster.ours(id_) for id_ in ids]
    for broker in brokers:
        broker.start()
    names = cluster.create("survived", [1, 2, *ids], [1, 2, *ids], min_insync_replicas=2, segment_bytes=1024 * 1024)
    cluster.await_isr({1, 2, *ids}, *names)
    with Load(cluster.bootstrap, names, per_second=1_000) as load:
        for number in range(KILLS):
            broker = brokers[number % len(brokers)]
            if chance.random() < 0.7:
                wait_for(
                    lambda: all(broker.id in cluster.isr(name) for name in names),  # noqa: B023
                    f"{broker.id} is in the ISRs",
                )
            else:
                broker.await_event("started")
            time.sleep(chance.uniform(0, 0.5))
            broker.check_alive()
            broker.kill()
            broker.start()
        cluster.await_isr({1, 2, *ids}, *names)
        load.await_more()
    check_kept(cluster, "survived", load.acked, len(names))
    for broker in brokers:
        await_same(cluster, broker.paths, names)
        broker.check_sound()
    for broker in at_least_one(brokers[1:]):
        assert broker.stop() == 0
    elect(cluster, ElectionType.PREFERRED, names)
    check_as_follower(cluster, brokers[0], 2, names)


def test_it_truncates_to_a_leader_that_was_elected_uncleanly(cluster: Cluster) -> None:
    broker = cluster.ours(31)
    broker.start()
    (name,) = cluster.create("unclean", [1, 2, 31])
    cluster.await_isr({1, 2, 31}, name)
    write(cluster.bootstrap, name, 1_000)
    cluster.nodes[2].kill()
    cluster.await_isr({1, 31}, name)
    write(cluster.bootstrap, name, 500, enable_idempotence=True)
    broker.kill()
    cluster.nodes[1].kill()
    more = bytes_of(broker.paths, name)
    wait_for(lambda: cluster.leader(name) == -1, "no leader is left")
    cluster.nodes[2].start()
    elect(cluster, ElectionType.UNCLEAN, [name])
    wait_for(lambda: cluster.leader(name) == 2, "a broker leads that lacks records")
    write(cluster.bootstrap, name, 300, first=10_000, enable_idempotence=True)
    broker.start()
    cluster.await_isr({2, 31}, name)
    cluster.nodes[1].start()
    cluster.await_isr({1, 2, 31}, name)
    await_same(cluster, broker.paths, [name])
    now = bytes_of(broker.paths, name)
    assert not now.startswith(more)
    assert now[: len(more) // 2] == more[: len(more) // 2]
    check_as_follower(cluster, broker, 1, [name])


@contextmanager
def read_only_disk(folder: Path) -> Iterator[tuple[Path, Callable[[], None], Callable[[], None]]]:
    """A file system, what makes it read-only as a fault of its disk does, and what mends it."""
    image, disk = folder / "image", folder / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(64 * 1024 * 1024)

    def mount() -> None:
        _run("mount", "-o", "loop,errors=remount-ro", image, disk)

    def damage() -> None:
        device = Path(_run("findmnt", "-n", "-o", "SOURCE", disk).strip()).name
        Path("/sys/fs/ext4", device, "trigger_fs_error").write_text("1")

    def mend() -> None:
        _run("umount", disk)
        subprocess.run(["e2fsck", "-p", image], capture_output=True, check=False)
        mount()

    _mounted("mkfs.ext4", "-q", "-F", image)
    _mounted("mount", "-o", "loop,errors=remount-ro", image, disk)
    try:
        yield disk, damage, mend
    finally:
        _run("umount", "-l", disk)


@contextmanager
def full_disk(folder: Path) -> Iterator[tuple[Path, Callable[[], None], Callable[[], None]]]:
    """A file system of 6 MiB, what fills it, and what makes it larger."""
    disk = folder / "disk"
    disk.mkdir()
    _mounted("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk)

    def fill() -> None:
        with (disk / "other").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def mend() -> None:
        (disk / "other").unlink()
        _run("mount", "-o", "remount,size=64m", disk)

    try:
        yield disk, fill, mend
    finally:
        _run("umount", "-l", disk)


def _run(*words: object) -> str:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=True).stdout


def _mounted(*words: object) -> None:
    try:
        _run(*words)
    except (OSError, subprocess.CalledProcessError) as fault:
        pytest.skip(f"a file system can't be mounted here: {fault}")


@pytest.mark.parametrize("failing", [read_only_disk, full_disk])
def test_a_directory_that_fails_is_offline_and_the_other_goes_on(
    cluster: Cluster,
    tmp_path: Path,
    failing: Callable[..., contextmanager],  # type: ignore[type-arg]
) -> None:
    id_, topic = {read_only_disk: (41, "read-only"), full_disk: (42, "full")}[failing]
    with failing(tmp_path) as (disk, damage, mend):
        broker = cluster.ours(id_, [disk / "logs", tmp_path / "logs"])
        broker.start()
        names = cluster.create(topic, *[[1, 2, id_]] * 4, min_insync_replicas=2)
        cluster.await_isr({1, 2, id_}, *names)
        wait_for(lambda: all(folder_of(broker.paths, name) for name in names), "all replicas have their logs")
        there = [name for name in names if folder_of([disk / "logs"], name)]
        others = [name for name in names if name not in there]
        assert len(there) == len(others) == 2
        failed = read_properties((disk / "logs" / META_PROPERTIES).read_bytes()).directory_id
        assert failed in cluster.observed.image.cluster.brokers[id_].directories
        with Load(cluster.bootstrap, names) as load:
            load.await_more()
            damage()
            broker.await_event("log_directory_failed")
            cluster.await_isr({1, 2}, *there)
            wait_for(
                lambda: failed not in cluster.observed.image.cluster.brokers[id_].directories, "it is reported offline"
            )
            load.await_more(500)
            cluster.await_isr({1, 2, id_}, *others)
        await_same(cluster, broker.paths[1:], others)
        check_kept(cluster, topic, load.acked, len(names))
        assert broker.stop() == 0
        mend()
        broker.start()
        cluster.await_isr({1, 2, id_}, *names)
        await_same(cluster, broker.paths, names)
        assert broker.stop() == 0
        check_with_kafka(cluster, broker.paths, names)
        broker.check_sound()


def test_it_goes_on_when_the_active_controller_is_killed(cluster: Cluster) -> None:
    broker = cluster.ours(51)
    broker.start()
    names = cluster.create("ruled", [1, 2, 51], min_insync_replicas=2)
    cluster.await_isr({1, 2, 51}, *names)
    with Load(cluster.bootstrap, names) as load:
        for number in range(3):
            killed = cluster.active_controller()
            cluster.nodes[killed].kill()
            wait_for(lambda: cluster.active_controller() != killed, "another controller is active")  # noqa: B023
            names += cluster.create(f"ruled-{number}", [2, 1, 51])
            cluster.await_isr({1, 2, 51}, *names)
            load.await_more()
            cluster.nodes[killed].start()
    check_kept(cluster, "ruled", load.acked, 1)
    await_same(cluster, broker.paths, names)
    assert broker.stop() == 0
    broker.check_sound()
