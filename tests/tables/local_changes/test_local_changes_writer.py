"""The rows of `local_changes/` made of the log's rows, against the metadata deltas that a broker's loader publishes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.columns.change_buffers import HAD, HAS
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.log.delta_chunk import DeltaBoundaries
from kraftlake.replay.log.partition_changes import changes_of_image
from kraftlake.runtime.errors import ReplayError
from kraftlake.tables.local_changes.local_changes_columns import _order, local_change_table
from kraftlake.tables.local_changes.local_changes_table import SCHEMA
from kraftlake.tables.local_changes.local_changes_writer import LocalChangesWriter
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import begin, data, end, partition, topic, uuid_of
from tests.tables.local_changes.reference import Row, local_change_rows
from tests.tables.logs_for_writers import (
    NEWER,
    REAL_LOGS,
    check_real_log,
    check_refused_in_a_newer_version,
    cut,
    generated_log,
    real_log,
    table_of,
    taken,
)


def published(batches: Iterable[RecordBatch]) -> pa.Table:
    """The rows of the deltas that are published after each batch, by objects."""
    rows: list[Row] = []

    def publish(delta: MetadataDelta, _: MetadataImage, manifest: LogDeltaManifest) -> None:
        at = manifest.provenance
        time = None if at.timestamp < 0 else at.timestamp * 1000
        if delta.topics_delta is not None:
            rows.extend(local_change_rows(delta.topics_delta, (at.offset, at.epoch, time)))

    loader = MetadataBatchLoader(publish=publish)
    for batch in batches:
        loader.load_batch(batch)
        loader.flush()
    return table_of(rows, SCHEMA)


def written(pieces: Iterable[Sequence[RecordBatch]]) -> pa.Table:
    """What the writer makes of the log's rows, by batches taken so many at a time."""
    return taken(LocalChangesWriter(), pieces, SCHEMA)


@few_examples
@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_every_row_is_what_the_delta_of_a_brokers_loader_shows(log: list[RecordBatch], cuts: list[int]) -> None:
    assert written(cut(log, cuts)).equals(published(log))


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=80), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_columns_have_the_same_rows_for_busy_topics(log: list[RecordBatch], cuts: list[int]) -> None:
    assert written(cut(log, cuts)).equals(published(log))


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=60), at=st.integers(0, 30))
def test_an_image_is_written_whole_as_the_delta_from_the_empty_one(log: list[RecordBatch], at: int) -> None:
    loader = MetadataBatchLoader()
    for batch in log[:at]:
        loader.load_batch(batch)
    delta, image = loader.take_change()
    whole = local_change_table(changes_of_image(image.topics), DeltaBoundaries.single(7, 3, -1)).cast(SCHEMA)
    rows = [] if delta.topics_delta is None else [*local_change_rows(delta.topics_delta, (7, 3, None))]
    assert [tuple(row.values()) for row in whole.to_pylist()] == rows


@pytest.mark.parametrize("sample", REAL_LOGS)
def test_real_logs_have_the_rows_of_their_deltas(sample: str) -> None:
    batches = real_log(sample)
    check_real_log(batches, written, published(batches))


def test_generated_logs_do_too() -> None:
    batches = generated_log(4)
    expected = published(batches)
    assert set(expected.column("change").to_pylist()) >= {"delete", "follower", "leader", "leader_elected"}
    assert written(cut(batches, (3, 50, 200))).equals(expected)


def test_a_topic_that_is_deleted_and_created_again_in_one_delta_is_deleted_first() -> None:
    log = [
        data(0, topic(1, "again"), partition(1)),
        data(2, r.RemoveTopicRecord(topic_id=uuid_of(1)), topic(2, "again"), partition(2)),
    ]
    rows = written([log])
    assert rows.equals(published(log))
    second = [row for row in rows.to_pylist() if row["offset"] == 4 and row["broker"] == 1]
    assert [(row["change"], row["topic_id"]) for row in second] == [
        ("delete", str(uuid_of(1))),
        ("leader_elected", str(uuid_of(2))),
    ]


def test_brokers_whose_ids_lie_far_apart_are_in_their_order() -> None:
    far = (2**31 - 1, 7, 1_000_000_000, 0)
    log = [
        data(0, topic(1, "b"), partition(1, replicas=far, leader=7), topic(2, "a"), partition(2, replicas=far[:2])),
        data(4, r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), replicas=(7, 3), isr=(7,))),
    ]
    rows = written([log])
    assert rows.equals(published(log))
    assert rows.column("broker").to_pylist() == [0, 7, 7, *far[2:3], *far[:1] * 2, 0, 3, 7, *far[2:3], *far[:1]]


def test_changes_that_no_number_can_order_are_in_order_too() -> None:
    rows, deltas = np.zeros((5, 14), np.int32), np.array([1 << 40, 0, 0, 0, 0])
    numbers, ranks = np.array([0, 1 << 30, 4, 4, 4], np.int32), np.array([0, 0, 1, 1, 0])
    flags = np.array([HAS, HAS, HAS, HAD, HAS], np.uint8)
    changes = attrs.evolve(
        changes_of_image(TopicsImage.EMPTY), before=rows, after=rows, flags=flags, deltas=deltas, partitions=numbers
    )
    assert _order(changes, ranks).tolist() == [4, 1, 3, 2, 0]
    assert _order(changes.take(slice(1, 5)), ranks[1:]).tolist() == [3, 0, 2, 1]


def test_a_delta_ends_before_a_transaction_that_begins_in_mid_batch() -> None:
    change = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2)
    log = [
        data(0, topic(1), partition(1), begin(), change),
        data(4, r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), isr=(2,)), end(), change),
    ]
    rows = written([log[:1], log[1:]])
    assert rows.equals(published(log))
    assert set(rows.column("offset").to_pylist()) == {1, 6}


def test_a_record_that_contradicts_what_is_there_is_named() -> None:
    change = r.PartitionChangeRecord(partition_id=3, topic_id=uuid_of(1), leader=2)
    with pytest.raises(ReplayError, match=r"offset 2, PARTITION_CHANGE_RECORD: topic 'topic-1' has no partition 3"):
        written([[data(0, topic(1), partition(1), change)]])


@pytest.mark.parametrize("record", NEWER)
def test_a_version_that_nobody_knows_is_refused_as_by_a_loader(record: Message) -> None:
    check_refused_in_a_newer_version(record, published, lambda log: written([log]))


def test_lists_that_are_longer_than_any_of_kafkas_are_written_too() -> None:
    wide = tuple(range(1, 1100))
    log = [
        data(0, topic(1), partition(1, replicas=wide)),
        data(2, r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), replicas=wide[:7], isr=wide[:5])),
    ]
    assert written([log]).equals(published(log))
