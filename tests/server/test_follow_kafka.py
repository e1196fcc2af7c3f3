"""Five real clusters of one node each: one is killed and started again while the others are followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftlake.api import open_source
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import encode_batch
from kraftlake.server.follow_config import ClusterConfig, FollowConfig
from tests.at_least_one import at_least_one
from tests.kafka_node import KafkaNode, started_node
from tests.server.services import following
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="five JVMs take 2 GB"),
]
CLUSTER_IDS = [f"kraftlakeTestCluster0{letter}" for letter in "AQgwA"]
TOPICS = "kafka_controller_kafkacontroller_globaltopiccount"


@contextmanager
def started(folder: Path) -> Iterator[list[KafkaNode]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(started_node(folder / f"node-{number}", cluster_id=id_))
            for number, id_ in enumerate(CLUSTER_IDS)
        ]


def create(node: KafkaNode, name: str) -> None:
    node.admin.create_topics([NewTopic(name, 3, 1)])[name].result()


def test_four_are_followed_on_while_one_is_killed_and_it_is_followed_again(tmp_path: Path) -> None:
    with started(tmp_path) as nodes:
        config = FollowConfig(
            clusters=tuple(
                ClusterConfig(
                    name=f"c{number}", bootstrap=node.controller, lake=str(tmp_path / f"lake-{number}"),
                    tables=number == 0,
                )
                for number, node in enumerate(nodes)
            )
        )  # fmt: skip
        with following(config, upkeep_seconds=5.0) as scraped:
            for number, node in enumerate(nodes):
                create(node, "before")
                wait_for(lambda n=number: scraped.value(TOPICS, f"c{n}") == 1)  # type: ignore[misc]
            nodes[2].kill()
            wait_for(lambda: scraped.state("c2") == "waiting")
            for number, node in enumerate(nodes):
                if number != 2:
                    create(node, "meanwhile")
                    wait_for(lambda n=number: scraped.value(TOPICS, f"c{n}") == 2)  # type: ignore[misc]
                    assert scraped.value("kraftlake_follow_up", f"c{number}") == 1
            nodes[2].start()
            create(nodes[2], "after")
            wait_for(lambda: scraped.value(TOPICS, "c2") == 2)
            assert scraped.state("c2") == "following"
            wait_for((tmp_path / "lake-0" / "events" / "_delta_log").exists)
        for number, node in at_least_one(enumerate(nodes)):
            node.stop()
            log = MetadataLog.open(tmp_path / f"lake-{number}")
            kept = list(log.batches())
            theirs = list(open_source(node.metadata_directory).batches(log.start_offset, log.end_offset - 1))
            assert [encode_batch(batch) for batch in kept] == [encode_batch(batch) for batch in theirs]
