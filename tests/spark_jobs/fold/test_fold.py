"""Any history, dealt out in any way, folds to the image and the local changes that one process makes of it."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_version import ALL
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.fold import changes_between, image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import ReplayError
from kraftlake.spark_jobs.fold.topic_frames import batches_of
from kraftlake.tables.local_changes.local_changes_table import SCHEMA
from kraftlake.tables.shards import shard_plan as planning
from kraftlake.tables.shards.shard_plan import plan_fold, provenance_at
from tests.at_least_one import at_least_one
from tests.few_examples import few_examples
from tests.histories import uuid_of
from tests.spark_jobs.fold.one_process import (
    changes_of,
    equal,
    folded,
    lake_with,
    local_image,
    logs,
    others_of,
    topics_of,
)
from tests.tables.local_changes.reference import local_change_rows, row_head

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of some dozen records in several pieces."""
    monkeypatch.setattr(planning, "_LEAST_ROWS", 7)


def keep_snapshot(log: MetadataLog, at: int) -> bool:
    """Keep the image at an offset, if it is one where snapshots are made."""
    replay = image_at(LakeReader(log), at, from_snapshot=False)
    provenance = replay.image.provenance
    if not provenance.batch_aligned or in_transaction(log, at) or replay.image.features.metadata_version is None:
        return False
    return log.add_snapshot(
        SnapshotFacts(end_offset=at + 1, epoch=provenance.epoch, last_contained_log_timestamp=provenance.timestamp),
        checkpoint_batches(
            replay.image.write(),
            epoch=provenance.epoch,
            timestamp=provenance.timestamp,
        ),
    )


def in_transaction(log: MetadataLog, at: int) -> bool:
    open_ = False
    for type_ in log.rows(0, at, ["type"])["type"].to_pylist():
        if type_ == "BEGIN_TRANSACTION_RECORD":
            open_ = True
        elif type_ in ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"):
            open_ = False
    return open_


@few_examples
@given(data=st.data(), batches=logs(), shards=st.integers(1, 5), commits=st.integers(1, 4), seed=st.integers(0, 999))
def test_the_shards_of_any_history_make_the_local_image_and_local_changes_at_any_offset(
    data: st.DataObject, batches: list[RecordBatch], shards: int, commits: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = lake_with(Path(folder) / "lake", batches, commits)
        at = data.draw(st.integers(0, log.end_offset - 1), label="at")
        if data.draw(st.booleans(), label="with a base"):
            keep_snapshot(log, data.draw(st.integers(1, max(at, 1)), label="base at"))
        order = random.Random(seed)
        plan = plan_fold(log, at, parallelism=3, shards=shards)
        rows = folded(plan, order)
        others = others_of(plan, rows)
        image = local_image(log, at)
        assert equal(image, topics_of(rows), others)
        assert (others.open_since is not None) == in_transaction(log, at)
        assert others.quorum == image_at(LakeReader(log), at).quorum
        check_local_changes(log, data.draw(st.integers(-1, at), label="from"), at, shards, order)


def check_local_changes(log: MetadataLog, from_offset: int, to_offset: int, shards: int, order: random.Random) -> None:
    topics = changes_between(LakeReader(log), from_offset, to_offset).delta.topics_delta
    end = provenance_at(log, to_offset)
    head = row_head(end)
    expected = [] if topics is None else list(local_change_rows(topics, head))
    plan = plan_fold(
        log,
        from_offset if from_offset >= 0 else to_offset,
        to=to_offset,
        parallelism=3,
        shards=shards,
        topics_only=True,
    )
    batches = [batch for changes in changes_of(plan, order, from_offset) for batch in batches_of(changes, end)]
    assert all(batch.schema == SCHEMA for batch in batches)
    rows = [(*head, *[*row.values()][3:]) for batch in batches for row in batch.to_pylist()]
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_pieces_of_one_batch_are_folded_in_the_logs_order(tmp_path: Path) -> None:
    records: list[Message] = [r.FeatureLevelRecord(name="metadata.version", feature_level=27)]
    for number in range(1, 12):
        records += [r.TopicRecord(name="foo", topic_id=uuid_of(number)), r.RemoveTopicRecord(topic_id=uuid_of(number))]
    versioned = [ApiMessageAndVersion(message, 0) for message in (*records, r.TopicRecord(name="foo"))]
    log = lake_with(tmp_path / "lake", [RecordBatch.of(0, 1, 1_700_000_000_000, versioned)], 1)
    plan = plan_fold(log, log.end_offset - 1, parallelism=3, shards=1)
    assert len(plan.pieces) > 2
    for seed in range(5):
        rows = folded(plan, random.Random(seed))
        assert equal(local_image(log, log.end_offset - 1), topics_of(rows), others_of(plan, rows))


def log_of(*messages: Message) -> list[RecordBatch]:
    """A log of a record a batch, each at its newest version."""
    return [
        RecordBatch.of(offset, 1, 1_700_000_000_000 + offset, [ApiMessageAndVersion(m, m.VERSIONS.high or 0)])
        for offset, m in enumerate(messages)
    ]


def topic(number: int) -> r.TopicRecord:
    return r.TopicRecord(name=f"t{number}", topic_id=uuid_of(number))


def partition(number: int, elr: tuple[int, ...] = ()) -> r.PartitionRecord:
    return r.PartitionRecord(
        partition_id=0, topic_id=uuid_of(number), replicas=(1, 2), isr=(1,), leader=1, leader_epoch=0,
        partition_epoch=0, directories=(uuid_of(9), uuid_of(9)), eligible_leader_replicas=elr or None,
    )  # fmt: skip


def config(number: int) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=2, resource_name=f"t{number}", name="retention.ms", value="1")


LEVEL = r.FeatureLevelRecord(name="metadata.version", feature_level=len(ALL))
TOPICS = [message for number in range(1, 9) for message in (topic(number), partition(number, (2,)), config(number))]
CHANGE = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(3), leader=2)
BEGIN, END, ABORT = r.BeginTransactionRecord(), r.EndTransactionRecord(), r.AbortTransactionRecord()
AGAIN = (
    r.RemoveTopicRecord(topic_id=uuid_of(3)),
    r.TopicRecord(name="t3", topic_id=uuid_of(33)),
    attrs.evolve(partition(3), topic_id=uuid_of(33)),
)


@pytest.mark.parametrize(
    "messages",
    [
        (CHANGE, CHANGE, partition(3), CHANGE),
        (BEGIN, CHANGE, r.RemoveTopicRecord(topic_id=uuid_of(4)), config(5), ABORT, CHANGE),
        (BEGIN, CHANGE, r.RemoveTopicRecord(topic_id=uuid_of(4)), END, CHANGE),
        (CHANGE, BEGIN, CHANGE, topic(40)),
        AGAIN,
        (*AGAIN, config(3)),
        (config(3), *AGAIN),
        (r.ClearElrRecord(topic_name=""), CHANGE),
        (r.ClearElrRecord(topic_name="t5"), CHANGE),
        (*AGAIN, r.ClearElrRecord(topic_name="t3")),
    ],
)
@pytest.mark.parametrize("shards", [1, 3] if LONG else [3])
def test_each_thing_that_makes_a_fold_difficult_is_as_in_one_process(
    tmp_path: Path, messages: tuple[Message, ...], shards: int
) -> None:
    log = lake_with(tmp_path / "lake", log_of(LEVEL, *TOPICS, *messages), 3)
    for at in at_least_one(range(len(TOPICS), log.end_offset)):
        plan = plan_fold(log, at, parallelism=3, shards=shards)
        rows = folded(plan, random.Random(at))
        assert equal(local_image(log, at), topics_of(rows), others_of(plan, rows))
        begins = (-1, 5, len(TOPICS), at)
        for from_offset in begins if LONG else (begins[at % len(begins)],):
            check_local_changes(log, from_offset, at, shards, random.Random(at))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (r.ClearElrRecord(topic_name="none"), "CLEAR_ELR_RECORD: topic 'none' does not exist"),
        (r.RemoveTopicRecord(topic_id=uuid_of(50)), "REMOVE_TOPIC_RECORD: the topic with id .* does not exist"),
        (attrs.evolve(CHANGE, partition_id=7), "PARTITION_CHANGE_RECORD: .*no partition 7"),
        (END, "EndTransactionRecord without a BeginTransactionRecord"),
    ],
)
def test_a_record_that_contradicts_those_before_it_is_named_by_its_offset(
    tmp_path: Path, message: Message, text: str
) -> None:
    log = lake_with(tmp_path / "lake", log_of(LEVEL, *TOPICS, message), 1)
    plan = plan_fold(log, log.end_offset - 1, parallelism=2, shards=2)
    with pytest.raises(ReplayError, match=text) as fault:
        others_of(plan, folded(plan, random.Random(0)))
    assert fault.value.offset == len(TOPICS) + 1
