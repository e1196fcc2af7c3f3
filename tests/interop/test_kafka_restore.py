"""Real Kafka nodes come up from what `kraftlake restore` writes, and lose no acknowledged record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

import kraftlake
from kraftlake.image.metadata_image import image_to_json
from kraftlake.kafka_files.node.broker_directory import read_broker_directory
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.restore.restore_files import write_restore
from kraftlake.replay.restore.restore_plan import plan_restore
from kraftlake.runtime.errors import NotASourceError
from tests.interop.kafka_classes import kafka_image_of_checkpoint, normal
from tests.interop.restored_nodes import consumed, produced, put_in_place
from tests.kafka_node import METADATA_LOG, started_node
from tests.replay.sample_logs import directory_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_kafka_reads_the_restored_image(kraft_version: int, tmp_path: Path) -> None:
    plan = plan_restore(
        kraftlake.open(directory_of("kafka-4.4")), 5083, voters=[(1, "h", 1)], kraft_version=kraft_version
    )
    write_restore(plan, tmp_path / "restored")
    checkpoint = tmp_path / "restored" / "1" / METADATA_LOG / plan.checkpoint_name
    kafka = kafka_image_of_checkpoint(checkpoint, end_offset=plan.image.offset + 1, epoch=plan.image.provenance.epoch)
    assert normal(image_to_json(plan.image, show_secrets=True)).items() <= normal(kafka).items()


def test_a_node_that_was_killed_comes_back_from_a_lake_of_its_own_log_as_a_dynamic_quorum(tmp_path: Path) -> None:
    """Eligible leader replicas are on: a controller would take a crashed broker out of all ISRs."""
    with started_node(tmp_path) as node:
        node.admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result()
        acked = produced(node.bootstrap, "orders", [b"value %d" % number for number in range(50)])
        lake = tmp_path / "lake"
        import_source(kraftlake.open(node.metadata_directory), lake)
        at = kraftlake.open(lake).last_image_offset
        assert kraftlake.open(lake).image().features.is_elr_enabled
        node.admin.create_topics([NewTopic("later", 1, 1)])["later"].result()
        produced(node.bootstrap, "later", [b"its folder is there"])
        acked += produced(node.bootstrap, "orders", [b"later %d" % number for number in range(50)])
        with pytest.raises(NotASourceError, match="a node runs on"):
            read_broker_directory(node.log_directory)
        node.kill()

        plan = plan_restore(
            kraftlake.open(lake), at, voters=[(1, "127.0.0.1", node.controller_port)], kraft_version=1,
            broker_dirs=[node.log_directory],
        )  # fmt: skip
        assert plan.newest_in == str(node.metadata_directory)
        assert plan.strays == {1: ("later-0",)}
        assert plan.warnings == ()
        write_restore(plan, tmp_path / "restored")
        put_in_place(tmp_path / "restored", node)
        properties = node.folder / "server.properties"
        static = re.compile("^controller.quorum.voters=.*$", re.MULTILINE)
        servers = f"controller.quorum.bootstrap.servers={node.controller}"
        properties.write_text(static.sub(servers, properties.read_text()))
        node.start()

        assert consumed(node.bootstrap, "orders", acked) == set(acked)
        topics = node.admin.list_topics(timeout=120).topics
        assert "orders" in topics
        assert "later" not in topics
        more = produced(node.bootstrap, "orders", [b"after"])
        assert [(partition, offset) for partition, offset, _ in more] == [(0, len(acked))]
        node.kill()
        back = kraftlake.open(node.metadata_directory)
        assert back.start_offset == plan.image.offset + 1
        assert back.replay().quorum.voters == plan.voters_record
        state = back.image().topics.get_topic("orders")
        assert state is not None
        assert (state.partitions[0].leader, state.partitions[0].isr) == (1, (1,))
        assert state.partitions[0].leader_epoch > plan.margin
        assert back.verify().sound
