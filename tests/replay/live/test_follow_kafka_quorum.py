"""Following a real Kafka quorum over the network: only what it committed, whatever happens to either side."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

import kraftlake
from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.protocol.observer.raw_batch import RawBatch
from kraftlake.records.batch import encode_batch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.queries.quorum_report import describe_quorum
from tests.kafka_node import SMALL_LOG, KafkaNode, started_node, started_nodes
from tests.replay.following import PATIENCE, ROOT, change_topics, check_same, following, position
from tests.replay.live.admin_work import AdminWork
from tests.replay.live.bad_network import BadNetwork

pytestmark = pytest.mark.spark
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
long_only = pytest.mark.skipif(not LONG, reason="make test-long: three nodes, and minutes")


def cli(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kraftlake.cli", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)


@contextmanager
def watching(quorum: str) -> Iterator[Iterator[str]]:
    """The lines of `kraftlake watch --json`, once it watches; it is interrupted at the end of the block."""
    command = [sys.executable, "-m", "kraftlake.cli", "watch", quorum, "--last", "1h", "--json", "--poll", "0.1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        yield itertools.chain([process.stdout.readline()], process.stdout)
        process.send_signal(signal.SIGINT)
        process.wait()


def test_a_quorum_of_one_is_followed_over_kills_of_either_side_and_asked_as_a_source(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with started_node(tmp_path / "kafka", settings=SMALL_LOG) as node:
        for round_ in range(2 if LONG else 1):
            with following(node.controller, lake, kill=True) as follower:
                change_topics(node, 30 * round_, 15)
                follower.follow_to(position(node).high_watermark)
                change_topics(node, 30 * round_ + 15, 15)  # killed while it takes these
        with following(f"127.0.0.1:1,{node.controller}", lake) as follower:
            node.kill()
            node.start()
            change_topics(node, 60, 3)
            high_watermark = position(node).high_watermark
            follower.follow_to(high_watermark)
        live, stored = kraftlake.open(f"kafka://{node.controller}"), kraftlake.open(lake)
        assert live.cluster_id == stored.cluster_id == node.cluster_id
        at = high_watermark - 1
        assert (
            live.image(at).to_json()
            == stored.image(at).to_json()
            == kraftlake.open(node.metadata_directory).image(at).to_json()
        )
        assert not live.verify().problems
        assert live.end_offset >= high_watermark
        result = cli("quorum", node.controller)
        assert result.returncode == 0, result.stderr
        assert "leads in epoch" in result.stdout
        assert "1 of 1 voter is here" in result.stdout
        assert json.loads(cli("quorum", node.controller, "--json").stdout)["voters"][0]["id"] == node.node_id
        check_doctor(node, at)
        change_topics(node, 63, 1)  # something for the first line: by now the node may have deleted all that was before
        with watching(node.controller) as events:
            node.admin.create_topics([NewTopic("seen", 1, 1)])["seen"].result(timeout=PATIENCE)
            while json.loads(line := next(events)).get("topic") != "seen":
                assert line
        refused = cli("image", node.bootstrap)
        assert refused.returncode == 1
        assert "is a broker" in refused.stderr
        node.stop()
        log = MetadataLog.open(lake)
        assert high_watermark <= log.end_offset == log.committed_to
        check_same(lake, node)


def check_doctor(node: KafkaNode, at: int) -> None:
    """The quorum is diagnosed as its directory is, and led by the node, which fetches from nobody and is not silent."""
    live, stored = (diagnose(source, at).to_json() for source in (node.controller, node.metadata_directory))
    for form in (live, stored):
        for finding in form["findings"]:
            finding["command"] = finding["command"].split()[:2]
        form["findings"] = [finding for finding in form["findings"] if finding["check"] != "torn_tail"]
    assert live == stored
    result = cli("doctor", f"127.0.0.1:1,{node.controller}")
    assert result.returncode in (0, 3), result.stderr
    assert f"1 voter ({node.node_id}), 1 here, led by {node.node_id} in epoch" in result.stdout


@contextmanager
def paused(*nodes: KafkaNode) -> Iterator[None]:
    for node in nodes:
        node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            node.signal(signal.SIGCONT)


@long_only
def test_a_record_that_was_fetched_and_then_replaced_never_enters_a_lake(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    roles = {1: "controller", 2: "controller", 3: "controller", 4: "broker"}
    # A leader that nobody fetches from gives up after one and a half of this: long enough to append a record.
    settings = {"controller.quorum.fetch.timeout.ms": "15000"}
    with started_nodes(tmp_path / "kafka", roles, settings=settings) as nodes:
        broker = nodes.pop(4)
        everyone = list(nodes.values())
        quorum = ",".join(node.controller for node in everyone)
        at = position(*everyone)
        leader = nodes[at.leader_id]
        others = [node for node in everyone if node is not leader]
        observer = QuorumObserver(parse_addresses(quorum), connect=NodeConnector())
        log = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
        with observer, following(quorum, lake) as follower:
            follower.follow_to(at.high_watermark)
            while log.next_offset < at.high_watermark:
                observer.fetch(log)
            with paused(*others):
                time.sleep(1)  # a fetch that was under way is answered within half a second: not with the record
                lost = broker.admin.create_topics([NewTopic("lost", 1, 1)])["lost"]
                deadline = time.monotonic() + PATIENCE
                replaced: list[RawBatch] = []
                while not replaced:
                    assert time.monotonic() < deadline, "the leader sends nothing"
                    observer.fetch(log, wait_ms=50)
                    replaced = [batch for batch in log._waiting if b"lost" in batch.data]
                leader.kill()
            lost.result(timeout=PATIENCE)  # the broker asks the next leader again
            change_topics(broker, 0, 3)
            high_watermark = position(*others).high_watermark
            follower.follow_to(high_watermark)
        taken = {batch.base_offset: encode_batch(batch) for batch in MetadataLog.open(lake).batches()}
        assert high_watermark > replaced[0].base_offset
        assert replaced[0].data not in taken.values()
        assert "topic-1" in kraftlake.open(lake).image().topics.topics_by_name()
        for node in others:
            node.stop()
        check_same(lake, *others)


@long_only
def test_a_quorum_is_followed_through_600_admin_calls_while_20_leaders_go_and_a_network_drops_delays_and_garbles(
    tmp_path: Path,
) -> None:
    """Nothing is deleted, so that all of both logs is compared."""
    lake = tmp_path / "lake"
    roles = dict.fromkeys((1, 2, 3), "controller") | dict.fromkeys((4, 5), "broker")
    settings = {key: value for key, value in SMALL_LOG.items() if "retention" not in key}
    with started_nodes(tmp_path / "kafka", roles, settings=settings) as nodes, BadNetwork() as network:
        controllers = [nodes[id_] for id_ in (1, 2, 3)]
        work = AdminWork([nodes[4], nodes[5]])
        quorum = ",".join(str(network.to(node.controller)) for node in controllers)
        kills = stops = 0
        with following(quorum, lake) as follower:
            for round_ in range(20):
                network.break_connections()
                work.do(15)
                at = position(*controllers)
                leader = nodes[at.leader_id]
                if round_ % 5 == 4:
                    leader.stop()
                    stops += 1
                else:
                    leader.kill()
                    kills += 1
                work.do(16)  # the others elect meanwhile
                others = [node for node in controllers if node is not leader]
                assert position(*others).leader_epoch > at.leader_epoch
                leader.start()
                follower.follow_to(position(*controllers).high_watermark)
            high_watermark = position(*controllers).high_watermark
            follower.follow_to(high_watermark)
        direct = ",".join(node.controller for node in controllers)
        while any(copy.end_offset < high_watermark for copy in describe_quorum(direct).fetching_voters):
            time.sleep(0.5)  # the last one that was started catches up
        for node in controllers:
            node.stop()
        assert (kills, stops) == (16, 4)
        assert work.calls >= 600
        assert network.spoiled > 20
        check_same(lake, *controllers)
        log = MetadataLog.open(lake)
        assert log.start_offset <= 1
        assert log.end_offset >= high_watermark
        assert all(kraftlake.open(node.metadata_directory).start_offset == 0 for node in controllers)


@long_only
def test_a_lake_begins_at_the_oldest_snapshot_of_a_log_that_was_cut_and_one_left_behind_is_refused(
    tmp_path: Path,
) -> None:
    lake, early = tmp_path / "lake", tmp_path / "early"
    with started_node(tmp_path / "kafka", settings=SMALL_LOG) as node:
        with following(node.controller, early) as follower:
            follower.follow_to(position(node).high_watermark)
        deadline, number = time.monotonic() + 4 * PATIENCE, 0
        while kraftlake.open(node.metadata_directory).start_offset == 0:
            assert time.monotonic() < deadline, "the node deletes nothing"
            change_topics(node, number, 10)
            number += 10
        with following(node.controller, lake) as follower:
            follower.follow_to(position(node).high_watermark)
        found, theirs = kraftlake.open(lake), kraftlake.open(node.metadata_directory)
        assert found.start_offset >= theirs.start_offset > 0
        assert found.image(found.start_offset).to_json() == theirs.image(found.start_offset).to_json()
        behind = cli("import", "--follow", node.controller, early)
        assert behind.returncode == 1
        assert "is gone there" in behind.stderr
        node.stop()
        check_same(lake, node)
