"""Three controllers of a cluster are lost, and come back as a dynamic quorum: their voters are in the snapshot."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

import kraftlake
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.queries.quorum_report import describe_quorum
from kraftlake.replay.restore.restore_files import write_restore
from kraftlake.replay.restore.restore_plan import plan_restore
from tests.interop.restored_nodes import consumed, produced, put_in_place
from tests.kafka_node import KafkaNode, started_nodes
from tests.replay.following import position
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: six nodes, twice"),
]

CONTROLLERS, BROKERS = (101, 102, 103), (1, 2, 3)
PARTITIONS, REPLICAS = 6, 3


def ask_for_controllers_at(node: KafkaNode, servers: str) -> None:
    """Configure a node of a dynamic quorum, in place of one whose voters are in its properties."""
    properties = node.folder / "server.properties"
    static = re.compile("^controller.quorum.voters=.*$", re.MULTILINE)
    properties.write_text(static.sub(f"controller.quorum.bootstrap.servers={servers}", properties.read_text()))


def test_three_controllers_come_back_as_the_voters_of_a_dynamic_quorum_and_lead_all_partitions(tmp_path: Path) -> None:
    roles = dict.fromkeys(CONTROLLERS, "controller") | dict.fromkeys(BROKERS, "broker")
    lake, restored = tmp_path / "lake", tmp_path / "restored"
    with started_nodes(tmp_path / "kafka", roles, settings={"broker.session.timeout.ms": "9000"}) as nodes:
        brokers, controllers = ([nodes[id_] for id_ in ids] for ids in (BROKERS, CONTROLLERS))
        bootstrap = ",".join(node.bootstrap for node in brokers)
        quorum = ",".join(node.controller for node in controllers)
        nodes[1].admin.create_topics([NewTopic("orders", PARTITIONS, REPLICAS)])["orders"].result()
        acked = produced(bootstrap, "orders", [b"before %d" % number for number in range(120)], PARTITIONS)
        import_source(kraftlake.open(quorum), lake)
        for id_ in (*BROKERS, *CONTROLLERS):
            nodes[id_].stop()

        plan = plan_restore(
            kraftlake.open(lake), voters=[(node.node_id, "127.0.0.1", node.controller_port) for node in controllers],
            kraft_version=1, broker_dirs=[node.log_directory for node in brokers],
        )  # fmt: skip
        write_restore(plan, restored)
        for node in controllers:
            shutil.rmtree(node.log_directory)
            put_in_place(restored, node)
        for node in nodes.values():
            ask_for_controllers_at(node, quorum)
            node.launch()
        for node in nodes.values():
            node.await_ready()

        elected = position(*controllers)
        assert elected.leader_id in CONTROLLERS
        report = describe_quorum(quorum).to_json()
        assert report["kraftVersion"] == 1
        assert plan.voters_record is not None
        expected = {voter.voter_id: str(voter.voter_directory_id) for voter in plan.voters_record.voters}
        assert len(set(expected.values())) == len(CONTROLLERS)
        assert {voter["id"]: voter["directoryId"] for voter in report["voters"]} == expected
        assert {node["nodeId"]: node["directoryId"] for node in report["nodes"] if node["role"] == "voter"} == expected
        assert {node.node_id: str(find_properties(node.log_directory).directory_id) for node in controllers} == expected

        def led() -> dict[int, int]:
            topic = kraftlake.open(quorum).image().topics.get_topic("orders")
            assert topic is not None
            return {id_: len(one.isr) for id_, one in topic.partitions.items() if one.leader in BROKERS}

        wait_for(lambda: led() == dict.fromkeys(range(PARTITIONS), REPLICAS))
        assert consumed(bootstrap, "orders", acked, PARTITIONS) == set(acked)

        nodes[elected.leader_id].kill()  # two of the three voters in the snapshot elect another
        others = [node for node in controllers if node.node_id != elected.leader_id]
        while (at := position(*others)).leader_epoch == elected.leader_epoch:
            time.sleep(0.2)
        assert at.leader_id in {node.node_id for node in others}
        nodes[2].admin.create_topics([NewTopic("after", 3, REPLICAS)])["after"].result()
        more = produced(bootstrap, "orders", [b"after %d" % number for number in range(60)], PARTITIONS)
        assert consumed(bootstrap, "orders", [*acked, *more], PARTITIONS) == {*acked, *more}
        assert kraftlake.open(",".join(node.controller for node in others)).verify().sound
