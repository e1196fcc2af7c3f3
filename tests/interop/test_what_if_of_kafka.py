"""What-if predicts what a real cluster does when a broker is killed or stopped, and when partitions are reassigned."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

import kraftlake
from kraftlake.diagnosis.trial.what_if import WhatIf
from kraftlake.image.metadata_image import MetadataImage
from tests.controller.kafka_rpc import KafkaRpc
from tests.kafka_node import KafkaNode, started_nodes
from tests.server.controller import wire_requests as w
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,  # a JVM
    pytest.mark.skipif(
        os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: four nodes, several starts"
    ),
]
CONTROLLER, BROKERS = 100, (1, 2, 3)
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controlled.shutdown.enable": "true",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
}
TOPICS = {
    "alone": ([[1], [2], [3]], {}),
    "pairs": ([[1, 2], [2, 3], [3, 1], [2, 1]], {"min.insync.replicas": "2"}),
    "three": ([[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"}),
    "unclean": ([[2, 3], [2, 1]], {"unclean.leader.election.enable": "true"}),
}


class Cluster:
    """The nodes, and the image that the quorum has committed."""

    def __init__(self, nodes: dict[int, KafkaNode]) -> None:
        self.nodes = nodes

    def image(self) -> MetadataImage:
        return kraftlake.open(self.nodes[CONTROLLER].controller).image()

    def await_image(self, holds: Callable[[MetadataImage], bool], what: str) -> MetadataImage:
        def found() -> MetadataImage | None:
            image = self.image()
            return image if holds(image) else None

        return wait_for(found, what)

    def await_fenced(self, broker: int, fenced: bool) -> MetadataImage:
        return self.await_image(lambda image: image.cluster.brokers[broker].fenced == fenced, f"fenced: {fenced}")

    def what_if(self, *steps: str) -> WhatIf:
        return kraftlake.open(self.nodes[CONTROLLER].controller).what_if(*steps)


def states(image: MetadataImage) -> dict[str, tuple[object, ...]]:
    """The leader, the ISR, the ELR and the replicas of each partition; in which order brokers catch up is theirs."""
    return {
        f"{name}-{number}": (
            one.leader,
            {*one.isr},
            {*one.elr},
            one.replicas,
            one.adding_replicas,
            one.removing_replicas,
        )
        for name, topic in image.topics.topics_by_name().items()
        for number, one in topic.partitions.items()
    }


Moves = dict[tuple[str, int], tuple[int, ...]]


def written(file: Path, moves: Moves) -> Path:
    """The file of kafka-reassign-partitions."""
    partitions = [{"topic": topic, "partition": at, "replicas": replicas} for (topic, at), replicas in moves.items()]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return file


def reassign(node: KafkaNode, moves: Moves) -> None:
    """Have the cluster reassign partitions; the tool refuses to where a broker is away."""
    with closing(KafkaRpc(node.bootstrap)) as rpc:
        answer = rpc.ask(w.reassign(*((topic, at, replicas) for (topic, at), replicas in moves.items())))
    assert not answer.error_code
    assert not [one for topic in answer.responses for one in topic.partitions if one.error_code]


def test_what_if_says_what_a_real_cluster_does(tmp_path: Path) -> None:
    roles = {CONTROLLER: "controller", **dict.fromkeys(BROKERS, "broker")}
    with started_nodes(tmp_path, roles, settings=SETTINGS) as nodes:
        cluster = Cluster(nodes)
        cluster.await_image(lambda image: {*image.cluster.brokers} == {*BROKERS}, "all brokers are registered")
        new = [
            NewTopic(name, num_partitions=len(assignment), replica_assignment=assignment, config=config)
            for name, (assignment, config) in TOPICS.items()
        ]
        for future in nodes[1].admin.create_topics(new).values():
            future.result(timeout=120)
        cluster.await_image(lambda image: len(states(image)) == 12, "the topics are there")

        # a broker is killed: its session ends
        predicted = cluster.what_if("lose-broker 2", "restart 2", "catch-up")
        lost, back, _ = (one.stages[-1].standing for one in predicted.steps)
        only_lost = cluster.what_if("lose-broker 2")
        nodes[2].kill()
        after = cluster.await_fenced(2, fenced=True)
        assert after.topics == only_lost.image.topics
        assert lost.offline == ("alone-1",)
        assert lost.under_min_isr == ("alone-1", "pairs-0", "pairs-1", "pairs-3")

        # and it starts again, as after a crash, and catches up
        nodes[2].start()
        cluster.await_fenced(2, fenced=False)
        assert back.offline == ()
        expected = states(predicted.image)
        cluster.await_image(lambda image: states(image) == expected, f"{expected}")

        # another one is stopped in order
        predicted = cluster.what_if("restart 3", "catch-up")
        stopped = predicted.steps[0].stages[0].standing
        nodes[3].stop()
        after = cluster.await_fenced(3, fenced=True)
        assert after.cluster.brokers[3].in_controlled_shutdown
        assert stopped.leaders == {id_: sum(leader == id_ for leader, *_ in states(after).values()) for id_ in (1, 2)}
        assert stopped.offline == tuple(sorted(name for name, (leader, *_) in states(after).items() if leader < 0))
        nodes[3].start()
        cluster.await_fenced(3, fenced=False)
        expected = states(predicted.image)
        cluster.await_image(lambda image: states(image) == expected, f"{expected}")

        # partitions are reassigned, some of them to a broker that is away: those wait for it
        nodes[2].kill()
        before = cluster.await_fenced(2, fenced=True)
        moves: Moves = {
            ("alone", 0): (2,), ("alone", 2): (2, 3), ("pairs", 2): (1, 3), ("three", 0): (3, 2, 1),
            ("three", 2): (3, 1),
        }  # fmt: skip
        file = written(tmp_path / "away.json", moves)
        begun, predicted = (
            cluster.what_if(f"reassign {file}"),
            cluster.what_if(f"reassign {file}", "restart 2", "catch-up"),
        )
        assert begun.after.reassigning == ("alone-0", "alone-2")
        reassign(nodes[1], moves)
        after = cluster.await_image(lambda image: image.topics != before.topics, "they are reassigned")
        assert after.topics == begun.image.topics
        nodes[2].start()
        expected = states(predicted.image)
        assert expected["alone-0"] == (2, {2}, set(), (2,), (), ())
        cluster.await_image(lambda image: states(image) == expected, f"{expected}")

        # and where all are there
        moves = {
            ("alone", 1): (1,),
            ("pairs", 0): (3, 2),
            ("pairs", 3): (3, 1),
            ("three", 1): (1, 2),
            ("unclean", 1): (3,),
        }
        predicted = cluster.what_if(f"reassign {written(tmp_path / 'all.json', moves)}", "catch-up")
        reassign(nodes[1], moves)
        expected = states(predicted.image)
        cluster.await_image(lambda image: states(image) == expected, f"{expected}")
