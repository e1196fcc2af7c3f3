"""Following a quorum of Kafka 3.9: its Fetch does not wait for the high watermark (KIP-1166 is newer)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.doctor.diagnosis import diagnose
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import NodeConnector
from tests.kafka_node import started_nodes
from tests.replay.following import change_topics, check_same, following, position

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: nodes of another release"),
]
FETCH = 1


def test_a_quorum_of_kafka_3_9_is_followed_over_kills_and_from_a_snapshot_on(tmp_path: Path) -> None:
    lake, late = tmp_path / "lake", tmp_path / "late"
    roles = dict.fromkeys((1, 2, 3), "controller") | {4: "broker"}
    settings = {"metadata.log.max.record.bytes.between.snapshots": "4096"}
    with started_nodes(tmp_path / "kafka", roles, settings=settings, release="3.9.1") as nodes:
        broker = nodes.pop(4)
        controllers = list(nodes.values())
        quorum = ",".join(node.controller for node in controllers)
        with NodeConnector()(parse_addresses(quorum)[0]) as controller:
            assert controller.versions_of(FETCH)[-1] == 17
        with following(quorum, lake) as follower:
            for round_ in range(3):
                change_topics(broker, 20 * round_, 10)
                at = position(*controllers)
                leader = nodes[at.leader_id]
                leader.kill()
                assert position(*(node for node in controllers if node is not leader)).leader_epoch > at.leader_epoch
                leader.start()
                change_topics(broker, 20 * round_ + 10, 10)
                follower.follow_to(position(*controllers).high_watermark)
        with following(quorum, late) as follower:  # made of the log and the snapshots that there are by now
            high_watermark = position(*controllers).high_watermark
            follower.follow_to(high_watermark)
        assert MetadataLog.open(late).snapshots()
        live = kraftlake.open(quorum)
        assert not live.verify().problems
        at_offset = high_watermark - 1
        images = [source.image(at_offset).to_json() for source in (live, kraftlake.open(late))]
        assert images[0] == images[1] == kraftlake.open(controllers[0].metadata_directory).image(at_offset).to_json()
        diagnosis = diagnose(quorum)
        assert len(diagnosis.quorum.voting) == 3
        assert "silent_node" not in {finding.check for finding in diagnosis.findings}
        for node in (broker, *controllers):
            node.stop()
        check_same(late, *controllers)
        with_all = MetadataLog.open(lake)
        assert with_all.start_offset <= 1
        check_same(lake, *controllers)
