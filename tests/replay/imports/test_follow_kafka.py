"""Following the directory of a real Kafka node while it writes, with its quorum as the judge of what is committed."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from kraftlake.api import open_source
from kraftlake.metadata_log.log import MetadataLog
from tests.kafka_node import SMALL_LOG, KafkaNode, started_node, started_nodes
from tests.replay.following import PATIENCE, Follower, change_topics, check_same, following, position

pytestmark = pytest.mark.spark
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


def of_directory(node: KafkaNode, lake: Path, quorum: str, *, kill: bool = False) -> AbstractContextManager[Follower]:
    return following("--quorum", quorum, node.metadata_directory, lake, "--poll", "0.1", kill=kill)


def test_a_live_node_is_followed_over_rolls_and_kills_up_to_its_high_watermark(tmp_path: Path) -> None:
    lake, rounds = tmp_path / "lake", 3 if LONG else 2
    with started_node(tmp_path / "kafka", settings=SMALL_LOG) as node:
        for round_ in range(rounds):
            with of_directory(node, lake, node.bootstrap, kill=True) as follower:
                change_topics(node, 30 * round_, 15)
                follower.follow_to(position(node).high_watermark)
                change_topics(node, 30 * round_ + 15, 15)  # killed while it takes these
        with of_directory(node, lake, f"127.0.0.1:1,{node.controller}") as follower:
            high_watermark = position(node).high_watermark
            follower.follow_to(high_watermark)
        node.stop()
        log = MetadataLog.open(lake)
        assert high_watermark <= log.end_offset == log.committed_to
        assert len(list(node.metadata_directory.glob("*.log"))) >= rounds, "too few segments were rolled"
        assert log.snapshots(), "no snapshot was made"
        check_same(lake, node)


@pytest.mark.skipif(not LONG, reason="make test-long: a node deletes segments once a minute")
def test_old_segments_may_go_while_they_are_followed(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with started_node(tmp_path / "kafka", settings=SMALL_LOG) as node:
        first = node.metadata_directory / f"{0:020d}.log"
        deadline = time.monotonic() + 4 * PATIENCE
        number = 0
        while first.exists() or number < 60:
            with of_directory(node, lake, node.bootstrap, kill=True) as follower:
                for _ in range(10):
                    assert time.monotonic() < deadline, "the node deletes nothing"
                    change_topics(node, number, 3)
                    number += 3
                    follower.follow_to(position(node).high_watermark)
        with of_directory(node, lake, node.bootstrap) as follower:
            change_topics(node, number, 3)
            follower.follow_to(position(node).high_watermark)
        node.stop()
        assert open_source(node.metadata_directory).start_offset > 0
        assert MetadataLog.open(lake).start_offset == 0
        check_same(lake, node)


@pytest.mark.skipif(not LONG, reason="make test-long: three nodes, and a new leader again and again")
def test_a_voters_directory_is_followed_over_changes_of_leader(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    roles = {1: "broker,controller", 2: "controller", 3: "controller"}
    with started_nodes(tmp_path / "kafka", roles, settings=SMALL_LOG) as nodes:
        everyone = list(nodes.values())
        quorum = ",".join(node.controller for node in everyone)
        leaders = []
        with of_directory(nodes[1], lake, quorum) as follower:
            for round_ in range(6):
                at = position(*everyone)
                leaders.append(at.leader_epoch)
                try:
                    change_topics(nodes[1], 10 * round_, 10)
                except KafkaException:
                    assert round_, "the first leader answers"  # a later one may still be electing itself
                nodes[at.leader_id].kill()
                with of_directory(nodes[1], tmp_path / f"lake-{round_}", quorum) as begun_in_an_election:
                    others = [node for node in everyone if node.node_id != at.leader_id]
                    while position(*others).leader_epoch == at.leader_epoch:
                        time.sleep(0.2)
                    nodes[at.leader_id].start()
                    high_watermark = position(*everyone).high_watermark
                    follower.follow_to(high_watermark)
                    begun_in_an_election.follow_to(high_watermark)
        assert leaders == sorted(set(leaders))
        for node in everyone:
            node.stop()
        check_same(lake, *everyone)
