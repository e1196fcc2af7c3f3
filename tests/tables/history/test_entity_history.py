from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.directory import open_directory
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.tables.history.entity_history import EntityHistory
from kraftlake.tables.history.entity_table import EntityTable
from kraftlake.tables.history.entity_tables import (
    ACLS,
    BROKERS,
    CONFIGS,
    FEATURES,
    QUOTAS,
    SCRAM,
    SMALL_TABLES,
    TOPICS,
)
from kraftlake.tables.row_buffer import table_of_rows
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import UNDECODABLE, begin, data, end, log_of, topic, uuid_of
from tests.tables.history.reference import Row, all_small_rows, images, plain
from tests.tables.logs_for_writers import HISTORIES_OF_REAL_LOGS
from tests.tables.sample_log import SAMPLES


def ended(log: Iterable[RecordBatch], states: Sequence[EntityHistory], start: MetadataImage) -> list[list[Any]]:
    """The rows that a log after an image ends, by history."""
    replay = LogReplay()
    if start is not MetadataImage.EMPTY:
        replay.begin(start, QuorumState())
    found: list[list[Any]] = [[] for _ in states]
    for chunk in (chunk for batch in log for chunk in replay.take_parts([batch])):
        for history, rows in zip(states, found, strict=True):
            rows.extend(history.take(chunk))
    return found


def histories(log: Iterable[RecordBatch], start: MetadataImage = MetadataImage.EMPTY) -> dict[str, list[Row]]:
    states = [EntityHistory(table, start) for table in SMALL_TABLES]
    made = {}
    for table, history, rows in zip(SMALL_TABLES, states, ended(log, states, start), strict=True):
        whole = pa.concat_tables([table_of_rows(rows, table.schema), history.open_table()])
        made[table.name] = plain(whole.to_pylist(), table.key)
    return made


def history(table: EntityTable, *groups: Sequence[Any]) -> list[Row]:
    return histories(log_of(*groups))[table.name]


@few_examples
@given(log=metadata_logs(max_steps=40))
def test_every_state_is_what_an_image_after_each_record_says(log: list[RecordBatch]) -> None:
    assert histories(log) == all_small_rows(log)


@few_examples
@given(log=metadata_logs(max_steps=40), at=st.integers(0, 30))
def test_it_goes_on_from_any_image(log: list[RecordBatch], at: int) -> None:
    at = min(at, len(log))
    before = LogReplay()
    [*before.take_parts(log[:at])]
    assume(not before.in_transaction)  # a snapshot is made outside of transactions only
    start = [MetadataImage.EMPTY, *images(log[:at])][-1]
    assert histories(log[at:], start) == all_small_rows(log[at:], start)


@pytest.mark.parametrize("sample", HISTORIES_OF_REAL_LOGS)
def test_real_logs_have_the_histories_that_their_images_have(sample: str) -> None:
    batches = [*open_directory(SAMPLES / sample / "log" / "__cluster_metadata-0").batches()]
    found = histories(batches)
    assert found == all_small_rows(batches)
    if sample == "kafka-4.4":
        assert all(found.values()), "the sample has something of everything"


def test_what_a_snapshot_of_the_past_knew_is_kept_where_it_began() -> None:
    log = log_of([topic(1)], [r.ConfigRecord(resource_type=2, resource_name="topic-1", name="flush.ms", value="1")])
    image = [*images(log)][-1]
    known = EntityHistory(TOPICS, image, lambda key: (0, 5) if key == (str(uuid_of(1)),) else None)
    topics, configs = known.open_table().to_pylist(), EntityHistory(CONFIGS, image).open_table().to_pylist()
    assert [row["valid_from_offset"] for row in (*topics, *configs)] == [0, 1]


def test_a_value_that_is_set_again_is_the_same_state() -> None:
    def retention(value: str | None) -> r.ConfigRecord:
        return r.ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value=value)

    rows = history(CONFIGS, [retention("1")], [retention("1")], [retention("2")], [retention(None)], [retention("2")])
    found = [(row["resource_type"], row["value"], row["valid_from_offset"], row["valid_to_offset"]) for row in rows]
    assert found == [("BROKER", "1", 0, 2), ("BROKER", "2", 2, 3), ("BROKER", "2", 4, None)]


def test_secrets_are_not_shown_but_their_change_is() -> None:
    def password(value: str) -> r.ConfigRecord:
        return r.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=value)

    def scram(key: bytes) -> r.UserScramCredentialRecord:
        return r.UserScramCredentialRecord(
            name="alice", mechanism=1, salt=b"s", stored_key=key, server_key=key, iterations=4096
        )

    found = histories(log_of([password("hunter2"), scram(b"k1")], [password("hunter3"), scram(b"k2")]))
    assert [row["value"] for row in found[CONFIGS.name]] == ["(redacted)"] * 2
    assert [(row["user"], row["mechanism"], row["iterations"]) for row in found[SCRAM.name]] == [
        ("alice", "SCRAM-SHA-256", 4096)
    ] * 2
    assert "hunter" not in repr(found)


def test_the_configs_of_a_topic_end_with_it() -> None:
    config = r.ConfigRecord(resource_type=2, resource_name="topic-1", name="cleanup.policy", value="compact")
    rows = history(CONFIGS, [topic(1), config], [begin(), r.RemoveTopicRecord(topic_id=uuid_of(1)), end()])
    assert [(row["valid_from_offset"], row["valid_to_offset"]) for row in rows] == [(1, 4)]


CONFIG_NAMES = ("retention.ms", "flush.ms", "cleanup.policy", "segment.bytes", "segment.ms", "compression.type")


def print_configs() -> None:
    """Print the configs that a removed topic ends, and those that an image begins with, in the order of their rows."""
    log = log_of(
        [topic(1)],
        [r.ConfigRecord(resource_type=2, resource_name="topic-1", name=name, value="1") for name in CONFIG_NAMES],
        [r.RemoveTopicRecord(topic_id=uuid_of(1))],
    )
    before = [*images(log)][-2]
    print([row[2] for row in ended(log, [EntityHistory(CONFIGS)], MetadataImage.EMPTY)[0]])
    print(EntityHistory(CONFIGS, before).open_table().column("config").to_pylist())


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_order_of_rows_depends_on_the_log_alone(seed: str) -> None:
    words = [sys.executable, "-c", f"from {__name__} import print_configs; print_configs()"]
    printed = subprocess.check_output(words, env=os.environ | {"PYTHONHASHSEED": seed}, text=True)
    assert printed.splitlines() == [str(sorted(CONFIG_NAMES))] * 2


def test_quotas_have_their_entity_in_words_and_as_columns() -> None:
    def quota(name: str | None, **fields: Any) -> r.ClientQuotaRecord:
        entity = (r.EntityData(entity_type="user", entity_name=name),)
        return r.ClientQuotaRecord(entity=entity, key="producer_byte_rate", **fields)

    rows = history(
        QUOTAS, [quota("alice", value=1.5)], [quota(None, value=2.0)], [quota("alice", value=1.5, remove=True)]
    )
    found = [(row["entity"], row["user"], row["client_id"], row["value"], row["valid_to_offset"]) for row in rows]
    assert found == [('{"user":"alice"}', "alice", None, 1.5, 2), ('{"user":null}', "<default>", None, 2.0, None)]


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (b"\x01\x04\x00\x7f", CorruptDataError, "record at offset 0 can't be decoded"),
        (UNDECODABLE, CorruptDataError, "record at offset 0 can't be decoded"),
        (r.RemoveTopicRecord(topic_id=uuid_of(3)), ReplayError, "offset 0, REMOVE_TOPIC_RECORD: the topic"),
        (r.FenceBrokerRecord(id=1, epoch=1), ReplayError, "ffset 0.*FENCE_BROKER_RECORD"),
    ],
)
def test_what_cannot_be_replayed_is_named_with_its_offset(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        histories([data(0, value)])


@pytest.mark.parametrize("table", SMALL_TABLES, ids=lambda table: table.name)
def test_every_column_says_what_it_means(table: EntityTable) -> None:
    assert all(len(comment) > 10 for _, comment in table.columns)
    assert set(table.key) <= set(table.schema.names)
    assert table.schema.names[-4:] == ["valid_from_offset", "valid_to_offset", "valid_from", "valid_to"]
    assert len({BROKERS.name, ACLS.name, FEATURES.name}) == 3
