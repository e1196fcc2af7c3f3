"""A cluster of three controllers and four brokers that loses its controllers, and what becomes of its records.

Leaders move several times after the offset that is restored. With the leaders, ISRs and epochs of that offset, as an
export has them, followers cut acknowledged records; with those of a restore, none is lost on any replica.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from rpds import HashTrieMap

import kraftlake
from kraftlake.kafka_files.node.broker_directory import read_broker_directory
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.restore.broker_facts import broker_facts
from kraftlake.replay.restore.restore_files import write_restore
from kraftlake.replay.restore.restore_plan import RestorePlan, plan_restore
from kraftlake.replay.restore.restored_image import restored_image
from tests.interop.restored_nodes import Record, consumed, on_disk, produced, put_in_place
from tests.kafka_node import KafkaNode, new_nodes
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="seven nodes, several times: a long test"),
]

CONTROLLERS, BROKERS = (101, 102, 103), (1, 2, 3, 4)
PARTITIONS, REPLICAS = 8, 3
SETTINGS = {"broker.session.timeout.ms": "9000", "replica.lag.time.max.ms": "10000", "num.replica.fetchers": "1"}


@attrs.frozen(kw_only=True)
class Wiped:
    """A cluster after its controllers were lost; `acked` are all acknowledged records of the topic orders."""

    nodes: dict[int, KafkaNode]
    lake: Path
    at: int
    acked: list[Record]

    @property
    def brokers(self) -> dict[int, KafkaNode]:
        return {id_: node for id_, node in self.nodes.items() if id_ in BROKERS}

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.brokers.values())

    def plan(self) -> RestorePlan:
        """A restore of the offset to controllers at the old addresses, by the logs of all brokers."""
        voters = [(id_, "127.0.0.1", self.nodes[id_].controller_port) for id_ in CONTROLLERS]
        directories = [node.log_directory for node in self.brokers.values()]
        return plan_restore(kraftlake.open(self.lake), self.at, voters=voters, broker_dirs=directories)

    @contextmanager
    def running(self, plan: RestorePlan, restored: Path) -> Iterator[None]:
        """The cluster with controllers that were restored by `plan`; ends with orderly shutdowns, brokers first."""
        write_restore(plan, restored)
        for id_ in CONTROLLERS:
            shutil.rmtree(self.nodes[id_].log_directory, ignore_errors=True)
            put_in_place(restored, self.nodes[id_])
        try:
            for node in self.nodes.values():
                node.launch()
            for node in self.nodes.values():
                node.await_ready()
            yield
            for id_ in (*BROKERS, *CONTROLLERS):
                self.nodes[id_].stop()
        finally:
            for node in self.nodes.values():
                node.kill()

    @contextmanager
    def disks_kept(self, folder: Path) -> Iterator[None]:
        """Put the brokers' disks back afterwards."""
        for id_, node in self.brokers.items():
            shutil.copytree(node.log_directory, folder / str(id_))
        try:
            yield
        finally:
            for id_, node in self.brokers.items():
                shutil.rmtree(node.log_directory)
                shutil.copytree(folder / str(id_), node.log_directory)

    def replicas(self) -> Iterator[tuple[int, int, KafkaNode]]:
        """Partition, broker and node of each replica of orders that has a folder."""
        for partition in range(PARTITIONS):
            for id_, node in self.brokers.items():
                if (node.log_directory / f"orders-{partition}").is_dir():
                    yield partition, id_, node

    def lost(self) -> dict[tuple[int, int], int]:
        """The number of acknowledged records that a replica lacks or has otherwise, by partition and broker."""
        missing = {}
        for partition, id_, node in self.replicas():
            wanted = {record for record in self.acked if record[0] == partition}
            if gone := len(wanted - set(on_disk(node, "orders", partition))):
                missing[partition, id_] = gone
        return missing

    def in_sync(self) -> dict[int, int]:
        """The sizes of the ISRs of orders that have a leader, by partition."""
        try:
            topic = self.nodes[BROKERS[0]].admin.list_topics("orders", timeout=120).topics["orders"]
        except KafkaException:
            return {}
        return {id_: len(one.isrs) for id_, one in topic.partitions.items() if one.leader >= 0}


@pytest.fixture(scope="module")
def wiped(tmp_path_factory: pytest.TempPathFactory) -> Wiped:
    """Brokers are killed in turn after the offset, so that leaders move; the last is down when the others write on."""
    folder = tmp_path_factory.mktemp("cluster")
    roles = dict.fromkeys(CONTROLLERS, "controller") | dict.fromkeys(BROKERS, "broker")
    nodes = new_nodes(folder, roles, settings=SETTINGS)
    cluster = Wiped(nodes=nodes, lake=folder / "lake", at=0, acked=[])
    try:
        for node in nodes.values():
            node.launch()
        for node in nodes.values():
            node.await_ready()
        nodes[1].admin.create_topics([NewTopic("orders", PARTITIONS, REPLICAS)])["orders"].result()

        def write(text: str, count: int = 160) -> None:
            values = [f"{text} {number:04}".encode() for number in range(count)]
            cluster.acked.extend(produced(cluster.bootstrap, "orders", values, PARTITIONS))

        def imported() -> kraftlake.Source:
            import_source(kraftlake.open(nodes[101].metadata_directory), cluster.lake)
            return kraftlake.open(cluster.lake)

        write("before")
        wait_for(lambda: imported().image().topics.get_topic("orders") is not None)
        at = imported().last_image_offset
        for victim in (1, 2, 3, 4, 1):
            nodes[victim].kill()
            write(f"without {victim}")
            nodes[victim].start()
            wait_for(lambda: cluster.in_sync() == dict.fromkeys(range(PARTITIONS), REPLICAS))
            write(f"with {victim} again", 40)
        nodes[2].admin.create_topics([NewTopic("later", 2, REPLICAS)])["later"].result()
        nodes[4].kill()
        write("at last")
        imported()
        for id_ in (1, 2):
            nodes[id_].stop()  # the rest crashes
    finally:
        for node in nodes.values():
            node.kill()
    return attrs.evolve(cluster, at=at)


def test_leaders_and_epochs_of_the_offset_cut_acknowledged_records(wiped: Wiped, tmp_path: Path) -> None:
    """As an export of the offset under a higher name has it."""
    before = wiped.lost()
    plan, image = wiped.plan(), kraftlake.open(wiped.lake).image(wiped.at)
    as_it_was = attrs.evolve(plan, image=attrs.evolve(image, provenance=plan.image.provenance))
    with wiped.disks_kept(tmp_path), wiped.running(as_it_was, tmp_path / "restored"):
        wait_for(lambda: any(gone > before.get(place, 0) for place, gone in wiped.lost().items()))
    assert wiped.lost() == before


def test_a_restore_keeps_every_acknowledged_record_on_every_replica(wiped: Wiped, tmp_path: Path) -> None:
    plan = wiped.plan()
    assert not plan.special.moved
    assert plan.special.lacking == (), "the newest state knows that broker 4 lacks records"
    assert {name for names in plan.strays.values() for name in names} == {"later-0", "later-1"}
    with wiped.running(plan, tmp_path / "restored"):
        wait_for(lambda: wiped.in_sync() == dict.fromkeys(range(PARTITIONS), REPLICAS))
        assert consumed(wiped.bootstrap, "orders", wiped.acked, PARTITIONS) == set(wiped.acked)
        assert "later" not in wiped.nodes[1].admin.list_topics(timeout=120).topics
        more = produced(wiped.bootstrap, "orders", [b"after %d" % number for number in range(80)], PARTITIONS)
    assert wiped.lost() == {}
    for partition, _, node in wiped.replicas():
        wanted = sorted(record for record in [*wiped.acked, *more] if record[0] == partition)
        assert on_disk(node, "orders", partition) == wanted
    assert len(list(wiped.replicas())) == PARTITIONS * REPLICAS
    ends = {kraftlake.open(wiped.nodes[id_].metadata_directory).start_offset for id_ in CONTROLLERS}
    assert ends == {plan.image.offset + 1}


def test_a_partition_that_moved_since_is_moved_back_with_its_records(wiped: Wiped, tmp_path: Path) -> None:
    """As if orders-0 had been on the one broker that does not have it now."""
    plan = wiped.plan()
    topic = plan.at.topics.get_topic("orders")
    assert topic is not None
    newest = topic.partitions[0]
    (spare,) = set(BROKERS) - set(newest.replicas)
    registered = plan.at.cluster.brokers[spare]
    once = attrs.evolve(newest, replicas=(spare,), isr=(spare,), directories=registered.directories, leader=spare)
    before = attrs.evolve(topic, partitions=HashTrieMap(dict(topic.partitions.items()) | {0: once}))
    at = attrs.evolve(plan.at, topics=plan.at.topics.changed({}, {topic.id: before}))
    facts = broker_facts([read_broker_directory(node.log_directory) for node in wiped.brokers.values()], plan.at)
    image, special = restored_image(
        at, plan.at, facts, provenance=plan.image.provenance, voters=CONTROLLERS, margin=plan.margin
    )
    assert special.moved == ("orders-0",)
    with wiped.disks_kept(tmp_path), wiped.running(attrs.evolve(plan, image=image), tmp_path / "restored"):
        whole = dict.fromkeys(range(PARTITIONS), REPLICAS) | {0: 1}
        wait_for(lambda: wiped.in_sync() == whole)
        consumed(wiped.bootstrap, "orders", wiped.acked, PARTITIONS)
