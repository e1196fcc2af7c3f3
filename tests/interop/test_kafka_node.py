from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from kraftlake.api import open_source
from tests.kafka_node import SMALL_LOG, started_node

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: test_kafka_restore.py kills a node as well"
    ),
]


def test_a_node_that_was_killed_goes_on_with_its_log_which_we_read(tmp_path: Path) -> None:
    with started_node(tmp_path, settings=SMALL_LOG) as node:
        node.admin.create_topics([NewTopic("before", 3, 1)])["before"].result()
        node.kill()
        before = open_source(node.metadata_directory)
        assert before.cluster_id == node.cluster_id
        assert before.image().topics.get_topic("before") is not None
        node.start()
        node.admin.create_topics([NewTopic("after", 1, 1)])["after"].result()
        assert {"before", "after"} <= set(node.admin.list_topics(timeout=120).topics)
        after = open_source(node.metadata_directory)
        assert after.end_offset > before.end_offset
        assert after.image().topics.get_topic("after") is not None
