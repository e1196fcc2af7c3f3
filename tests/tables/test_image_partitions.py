"""The partitions of an image as an Arrow table, as a notebook without Spark asks for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import given

import kraftlake
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.tables.image_partitions import partition_table
from tests.cli.running import DIRECTORY, ROOT
from tests.few_examples import few_examples
from tests.histories import histories
from tests.replay.loader.test_image_columns import images


def check(topics: TopicsImage, rows: list[dict[str, Any]]) -> None:
    assert len(rows) == topics.partition_count
    assert len({(row["topic"], row["partition"]) for row in rows}) == len(rows)
    for row in rows:
        topic = topics.get_topic(row["topic"])
        assert topic is not None
        assert row["topic_id"] == str(topic.id)
        state = topic.partitions[row["partition"]]
        for name in ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state"):
            assert row[name] == getattr(state, name)
        for name in ("replicas", "isr", "elr", "last_known_elr", "adding_replicas", "removing_replicas"):
            assert tuple(row[name]) == getattr(state, name)
        assert row["directories"] == [str(directory) for directory in state.directories]


def test_its_rows_are_the_partitions_of_the_image() -> None:
    image = kraftlake.open(DIRECTORY).image(1323)
    check(image.topics, kraftlake.partition_table(image).to_pylist())
    assert partition_table(image.topics) == partition_table(image)


@few_examples
@given(histories(min_steps=10))
def test_objects_and_packed_rows_have_the_same_table(records: Sequence[Any]) -> None:
    for topics in images(records):
        check(topics, partition_table(topics).to_pylist())


def test_an_empty_image_has_an_empty_table() -> None:
    assert partition_table(MetadataImage.EMPTY.topics).num_rows == 0


def test_it_needs_no_pyspark() -> None:
    program = (
        "import sys; from kraftlake.tables.image_partitions import partition_table; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
