"""Following the directory of a real Kafka node while it writes, with its quorum as the judge of what is committed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from kraftlake.api import open_source
from kraftlake.metadata_log import MetadataLog
from kraftlake.protocol import NodeError, QuorumClient, QuorumPosition, parse_addresses
from kraftlake.records.batch import encode_batch
from tests.kafka_node import SMALL_LOG, KafkaNode, started_node, started_nodes

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[3]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
PATIENCE = 120.0  # seconds until something is called stuck


class Follower:
    """`kraftlake import --follow --quorum` as a process."""

    def __init__(self, node: KafkaNode, lake: Path, quorum: str) -> None:
        words = ["import", "--follow", "--quorum", quorum, node.metadata_directory, lake, "--poll", "0.1", "--json"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kraftlake.cli", *map(str, words)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    def follow_to(self, end_offset: int) -> dict[str, Any]:
        """Read what it says until it has the log up to an offset; an idle controller writes twice a second."""
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            assert line, f"the follower ended with {self._process.wait()}"
            step: dict[str, Any] = json.loads(line)
            assert step["endOffset"] <= step["committed_to"]
            if step["endOffset"] >= end_offset:
                return step

    def end(self, number: int) -> int:
        """Send it a signal; how it ended."""
        self._process.send_signal(number)
        assert self._process.stdout is not None
        with self._process.stdout:
            self._process.stdout.read()  # it may be about to say more
        return self._process.wait()


@contextmanager
def following(node: KafkaNode, lake: Path, quorum: str, *, kill: bool = False) -> Iterator[Follower]:
    follower = Follower(node, lake, quorum)
    try:
        yield follower
    except BaseException:
        follower.end(signal.SIGKILL)
        raise
    ended = follower.end(signal.SIGKILL if kill else signal.SIGINT)
    assert ended == (-signal.SIGKILL if kill else 130)


def position(*nodes: KafkaNode) -> QuorumPosition:
    """Where the quorum stands, once it has a leader that knows."""
    addresses = parse_addresses(",".join(node.controller for node in nodes))
    deadline = time.monotonic() + PATIENCE
    with QuorumClient(addresses, cluster_id=nodes[0].cluster_id) as client:
        while True:
            try:
                found = client.describe()
                if found.high_watermark >= 0:
                    return found
            except NodeError:
                assert time.monotonic() < deadline, "the quorum has no leader"
            time.sleep(0.2)


def change_topics(node: KafkaNode, first: int, count: int) -> None:
    """Create topics, and delete every third."""
    made = [f"topic-{number}" for number in range(first, first + count)]
    for name in made:
        node.admin.create_topics([NewTopic(name, 8, 1)])[name].result(timeout=PATIENCE)
    for deleted in node.admin.delete_topics(made[::3]).values():
        deleted.result(timeout=PATIENCE)


def check_same(lake: Path, *nodes: KafkaNode) -> None:
    """The lake's log is a prefix of each node's log, as far as that goes back; its snapshots are sound."""
    log = MetadataLog.open(lake)
    ours = {batch.base_offset: encode_batch(batch) for batch in log.batches()}
    for node in nodes:
        directory = open_source(node.metadata_directory)
        theirs = {
            batch.base_offset: encode_batch(batch)
            for batch in directory.batches()
            if batch.last_offset < log.end_offset
        }
        assert {base: data for base, data in ours.items() if base >= min(theirs)} == theirs
        assert max(theirs) == max(ours)
    assert not open_source(lake).verify().problems


def test_a_live_node_is_followed_over_rolls_and_kills_up_to_its_high_watermark(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with started_node(tmp_path / "kafka", settings=SMALL_LOG) as node:
        for round_ in range(3):
            with following(node, lake, node.bootstrap, kill=True) as follower:
                change_topics(node, 30 * round_, 15)
                follower.follow_to(position(node).high_watermark)
                change_topics(node, 30 * round_ + 15, 15)  # killed while it takes these
        with following(node, lake, f"127.0.0.1:1,{node.controller}") as follower:
            high_watermark = position(node).high_watermark
            follower.follow_to(high_watermark)
        node.stop()
        log = MetadataLog.open(lake)
        assert high_watermark <= log.end_offset == log.committed_to
        assert len(list(node.metadata_directory.glob("*.log"))) > 2, "no segment was rolled"
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
            with following(node, lake, node.bootstrap, kill=True) as follower:
                for _ in range(10):
                    assert time.monotonic() < deadline, "the node deletes nothing"
                    change_topics(node, number, 3)
                    number += 3
                    follower.follow_to(position(node).high_watermark)
        with following(node, lake, node.bootstrap) as follower:
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
        with following(nodes[1], lake, quorum) as follower:
            for round_ in range(6):
                at = position(*everyone)
                leaders.append(at.leader_epoch)
                try:
                    change_topics(nodes[1], 10 * round_, 10)
                except KafkaException:
                    assert round_, "the first leader answers"  # a later one may still be electing itself
                nodes[at.leader_id].kill()
                with following(nodes[1], tmp_path / f"lake-{round_}", quorum) as begun_in_an_election:
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
