"""A disk of a real broker fails, is replaced, and comes back: what doctor says of the log at each step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftlake.diagnosis.doctor.diagnosis import Diagnosis, diagnose
from kraftlake.diagnosis.doctor.finding import Finding
from tests.diagnosis.doctor.made import by_check
from tests.kafka_node import KafkaNode, new_nodes
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,  # a JVM
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: two nodes, several starts"),
]
SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": "1000", "broker.session.timeout.ms": "6000"}


def with_two_disks(node: KafkaNode) -> Path:
    """Give a node that was not started a second log directory."""
    disk = node.folder / "disk"
    node.settings = {**node.settings, "log.dirs": f"{node.log_directory},{disk}"}
    shutil.rmtree(node.log_directory)
    node.format()
    return disk


def create(node: KafkaNode, topic: NewTopic) -> None:
    for made in node.admin.create_topics([topic]).values():
        made.result()


def on_the_disk(diagnosis: Diagnosis, name: str, disk: str) -> set[str]:
    """The partitions of a topic whose first replica lies in a directory."""
    topic = None if diagnosis.image is None else diagnosis.image.topics.get_topic(name)
    if topic is None:
        return set()
    return {f"{name}-{id_}" for id_, one in topic.partitions.items() if str(one.directories[0]) == disk}


def test_a_disk_that_fails_is_replaced_and_comes_back(tmp_path: Path) -> None:
    nodes = new_nodes(tmp_path, {1: "broker,controller", 2: "broker"}, settings=SETTINGS)
    one, two = nodes[1], nodes[2]
    disk = with_two_disks(two)

    def await_found(holds: Callable[[dict[str, Finding], Diagnosis], bool], what: str) -> Diagnosis:
        def found() -> Diagnosis | None:
            diagnosis = diagnose(one.metadata_directory)
            return diagnosis if holds(by_check(diagnosis), diagnosis) else None

        return wait_for(found, what)

    try:
        for node in (one, two):
            node.launch()
        for node in (one, two):
            node.await_ready()
        known = next(line for line in (disk / "meta.properties").read_text().splitlines() if "directory.id" in line)
        lost = known.partition("=")[2].replace("\\", "")
        create(one, NewTopic("solo", 6, replica_assignment=[[2]] * 6))
        before = await_found(
            lambda _, now: len(on_the_disk(now, "solo", lost)) == 3, "half of the replicas on the disk"
        )
        there = on_the_disk(before, "solo", lost)
        create(one, NewTopic("pair", 6, replica_assignment=[[2, 1]] * 6))
        await_found(lambda _, now: len(on_the_disk(now, "pair", lost)) == 3, "half of the others there")

        shutil.copytree(disk, tmp_path / "saved")
        shutil.rmtree(disk)
        disk.write_text("no folder: writing fails")
        here = by_check(await_found(lambda found, _: "offline_directories" in found, "the failed disk"))
        groups = {group.reason.rpartition(": ")[2]: group for group in here["offline_directories"].groups}
        assert set(groups["the only replica"].things) == there
        assert {name.partition("-")[0] for name in groups["others lead"].things} == {"pair"}
        assert all(lost in group.reason for group in groups.values())
        assert set(here["offline_partitions"].things) == there
        assert here["offline_partitions"].helps[0].action.startswith("Bring back the log directories of broker 2")

        two.kill()
        disk.unlink()
        disk.mkdir()
        two.format()
        two.start()
        here = by_check(
            await_found(
                lambda found, _: "replaced_directories" in found and len(found["replaced_directories"].things) == 3,
                "new disk",
            )
        )
        assert set(here["replaced_directories"].things) == there
        assert all(lost in group.reason for group in here["replaced_directories"].groups)

        two.kill()
        shutil.rmtree(disk)
        shutil.copytree(tmp_path / "saved", disk)
        two.start()
        here = by_check(await_found(lambda _, now: on_the_disk(now, "solo", lost) == there, "the old disk"))
        assert not {"replaced_directories", "offline_directories"} & {*here}

        two.stop()  # those that were not elected when the broker came back are when it is unfenced again
        two.start()
        await_found(lambda found, _: "offline_partitions" not in found, "a leader of each")
    finally:
        for node in (two, one):
            node.kill()
