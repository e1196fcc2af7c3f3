"""A real Kafka node starts on the log of a bundle."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

import kraftlake
from kraftlake.replay.bundle.bundle_file import write_bundle
from kraftlake.replay.bundle.bundle_plan import plan_bundle
from kraftlake.replay.bundle.key_file import new_pseudonyms, read_key
from kraftlake.replay.bundle.pseudonyms import translated
from tests.interop.restored_nodes import produced
from tests.kafka_node import METADATA_LOG, started_node

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: a node, twice"),
]


def test_a_node_starts_on_a_bundle_and_goes_on(tmp_path: Path) -> None:
    bundle, key = tmp_path / "handover.tar.gz", tmp_path / "ours.key"
    with started_node(tmp_path) as node:
        for future in node.admin.create_topics([NewTopic("orders", 3, 1), NewTopic("bills", 1, 1)]).values():
            future.result()
        node.stop()
        plan = plan_bundle(kraftlake.open(node.metadata_directory), pseudonyms=new_pseudonyms(key))
        assert plan.node_id == node.node_id
        write_bundle(plan, bundle, key_file=key)
        for path in node.log_directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        with tarfile.open(bundle) as archive:
            archive.extractall(node.log_directory, filter="data")
        (node.log_directory / "bundle.json").unlink()
        node.start()
        names = read_key(key)[1]
        topics = {
            translated(name, names): len(topic.partitions)
            for name, topic in node.admin.list_topics(timeout=120).topics.items()
        }
        assert topics == {"orders": 3, "bills": 1}
        (one,) = (name for name in node.admin.list_topics(timeout=120).topics if translated(name, names) == "bills")
        assert len(produced(node.bootstrap, one, [b"after"])) == 1
        node.kill()
        back = kraftlake.open(node.log_directory / METADATA_LOG)
        assert back.end_offset > plan.end_offset
        assert back.verify().sound
