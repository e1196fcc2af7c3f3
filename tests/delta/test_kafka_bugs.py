"""Where Kafka 4.4 contradicts itself: its own one delta a record is right, and ours is the same however it is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftlake.api import open_source
from kraftlake.image.metadata_image import image_to_json
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import ReplayError
from tests.histories import uuid_of
from tests.interop.kafka_classes import KafkaClassesError, kafka_image_of_log

pytestmark = pytest.mark.spark

USERS = ("alice", "bob", "carol", "dave")
LEVEL = r.FeatureLevelRecord(name="metadata.version", feature_level=30)
FOO, BAR = (r.TopicRecord(name=name, topic_id=uuid_of(number)) for name, number in (("foo", 7), ("bar", 8)))
REMOVE_FOO = r.RemoveTopicRecord(topic_id=uuid_of(7))
PARTITION = r.PartitionRecord(partition_id=0, topic_id=uuid_of(7), replicas=(1,), isr=(1,), leader=1)
CHANGE = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(7), leader=-1)


def scram(user: str) -> Message:
    return r.UserScramCredentialRecord(
        name=user, mechanism=1, salt=b"s", stored_key=b"k", server_key=b"t", iterations=4096
    )


def segment(folder: Path, *batches: list[Message]) -> Path:
    folder.mkdir(parents=True)
    offset, made = 0, []
    for batch in batches:
        made.append(RecordBatch.of(offset, 1, 1_700_000_000_000, [ApiMessageAndVersion(m, 0) for m in batch]))
        offset += len(batch)
    path = folder / f"{0:020d}.log"
    write_segment(path, made)
    return path


def three_images(folder: Path, *batches: list[Message]) -> tuple[Any, Any, Any]:
    """Ours, Kafka's with one delta a record, and Kafka's with one delta a batch."""
    whole = segment(folder / "whole", *batches)
    single = segment(folder / "single", *([message] for batch in batches for message in batch))
    last = sum(map(len, batches)) - 1
    ours = image_to_json(open_source(whole).image(), show_secrets=True)
    return ours, kafka_image_of_log([single], last), kafka_image_of_log([whole], last)


def test_kafka_loses_scram_users_that_are_set_where_the_last_one_before_is_removed(tmp_path: Path) -> None:
    lost = 0
    for gone in USERS:
        kept = [user for user in USERS if user != gone]
        remove = r.RemoveUserScramCredentialRecord(name=gone, mechanism=1)
        batches = [LEVEL, scram(gone)], [remove, *map(scram, kept)]
        ours, by_record, by_batch = three_images(tmp_path / gone, *batches)
        assert ours["scram"] == by_record["scram"]
        assert set(ours["scram"]["SCRAM-SHA-256"]) == set(kept)
        lost += by_batch["scram"] != by_record["scram"]
    assert lost > 0


def test_kafka_keeps_the_configs_of_a_topic_that_came_and_went_in_one_delta(tmp_path: Path) -> None:
    config = r.ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="1")
    ours, by_record, by_batch = three_images(tmp_path / "x", [LEVEL], [FOO, config, REMOVE_FOO])
    assert ours["configs"] == by_record["configs"] == {}
    assert by_batch["configs"] == {"TOPIC": {"foo": {"retention.ms": "1"}}}


def test_kafka_applies_what_was_aborted_where_its_batch_goes_on(tmp_path: Path) -> None:
    aborted: list[Message] = [r.BeginTransactionRecord(), FOO, r.AbortTransactionRecord(), BAR]
    ours, by_record, by_batch = three_images(tmp_path / "x", [LEVEL], aborted)
    assert set(ours["topics"]) == set(by_record["topics"]) == {"bar"}
    assert set(by_batch["topics"]) == {"foo", "bar"}


def test_kafka_revives_a_topic_that_is_changed_after_its_removal_in_one_delta(tmp_path: Path) -> None:
    before = [LEVEL, FOO, PARTITION]
    whole = segment(tmp_path / "whole", before, [REMOVE_FOO, CHANGE])
    single = segment(tmp_path / "single", before, [REMOVE_FOO], [CHANGE])
    assert set(kafka_image_of_log([whole], 4)["topics"]) == {"foo"}
    with pytest.raises(KafkaClassesError):
        kafka_image_of_log([single], 4)
    for path in (whole, single):
        with pytest.raises(ReplayError, match=r"(?i)offset 4.*does not exist"):
            open_source(path).image()
