"""The partitions of an image as an Arrow table, as a notebook without Spark asks for it."""

from __future__ import annotations

import subprocess
import sys

import kraftlake
from kraftlake.image import MetadataImage
from kraftlake.tables import partition_table
from tests.cli.running import DIRECTORY, ROOT


def test_its_rows_are_the_partitions_of_the_image() -> None:
    topics = kraftlake.open(DIRECTORY).image(1323).topics
    rows = partition_table(topics).to_pylist()
    assert len(rows) == topics.partition_count
    for row in rows:
        topic = topics.get_topic(row["topic"])
        assert topic is not None
        partition = topic.partitions[row["partition"]]
        assert (row["leader"], row["leader_epoch"]) == (partition.leader, partition.leader_epoch)
        assert (tuple(row["replicas"]), tuple(row["isr"])) == (partition.replicas, partition.isr)
        assert tuple(row["elr"]) == partition.elr


def test_an_empty_image_has_an_empty_table() -> None:
    assert partition_table(MetadataImage.EMPTY.topics).num_rows == 0


def test_it_needs_no_pyspark() -> None:
    program = "import sys; from kraftlake.tables import partition_table; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
