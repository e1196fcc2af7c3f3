from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records import metadata_records as r
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.tables.events.events_table import COLUMNS, EVENTS, KINDS
from kraftlake.tables.events.events_writer import EventsWriter
from tests.replay.made_logs import data, partition, topic
from tests.tables.folding import fold_into
from tests.tables.sample_log import LAST_OFFSET, batches_between, lake_of

Row = dict[str, Any]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, list[tuple[MetadataImage, MetadataImage]]]:
    log = lake_of(tmp_path_factory.mktemp("events") / "lake", commits=1)
    (rows,) = fold_into(log, [EventsWriter()])
    return rows, [(change.before, change.image) for change in LogChanges(LakeReader(log))]


def test_the_events_of_partitions_are_what_a_diff_of_the_images_shows(
    sample: tuple[pa.Table, list[tuple[MetadataImage, MetadataImage]]],
) -> None:
    rows, changes = sample
    found: dict[int, set[tuple[str, str, Any, Any]]] = {}
    for row in rows.to_pylist():
        if row["field"] in ("leader", "isr", "elr") and row["partition"] is not None:
            key = (f"{row['topic']}-{row['partition']}", row["field"], row["before"], row["after"])
            found.setdefault(row["offset"], set()).add(key)
    for before, after in changes:
        expected = set()
        for entry in [entry for entry in diff_images(before, after).changes if entry.part == "partitions"]:
            for change in entry.fields if entry.kind == "changed" else ():
                if change.field == "leader" or (
                    change.field in ("isr", "elr") and set(change.before) != set(change.after)
                ):
                    expected.add((entry.key, change.field, _text(change.before), _text(change.after)))
        assert found.pop(after.offset, set()) == expected
    assert not found


def _text(value: Any) -> str | None:
    return None if value == -1 else str(value)


def test_every_kind_is_described_and_the_sample_has_most_of_them(
    sample: tuple[pa.Table, list[tuple[MetadataImage, MetadataImage]]],
) -> None:
    kinds = Counter(sample[0].column("kind").to_pylist())
    assert kinds.keys() <= KINDS.keys()
    assert KINDS.keys() - kinds.keys() == {"reassignment_changed", "controller_changed", "voter_changed"}


def test_an_event_says_it_in_a_sentence(
    sample: tuple[pa.Table, list[tuple[MetadataImage, MetadataImage]]],
) -> None:
    sentences = {(row["offset"], row["sentence"]) for row in sample[0].to_pylist()}
    assert {
        (0, "controller 3000 leads the quorum in epoch 1"),
        (7, "broker 3 is registered in rack rack-2, fenced"),
        (10, "broker 3 is unfenced"),
        (64, "topic t-10-k3m is created with 2 partitions, replication factor 1"),
        (73, "topic fixed-a has retention.ms set to 100000"),
        (130, "quota of user (default): request_percentage set to 75.5"),
        (189, "ACL removed: allow User:p1200 delete on group res-82460 (prefixed) from *"),
        (192, "topic fixed-a has 6 partitions, 3 more than before"),
        (195, "fixed-a-2 is led by 1 instead of 2"),
        (195, "fixed-a-2 has 2 no longer in sync: [2, 3, 1] → [3, 1]"),
        (205, "metadata.version is at level 8 instead of 7"),
        (236, "broker 2 is in controlled shutdown"),
        (236, "t-1-bkq-0 has no leader any more, it was 2"),
        (268, "t-12-g25-3 has 2 in sync as well: [1, 3] → [1, 2, 3]"),
        (303, "credential SCRAM-SHA-256 of user su13 was set"),
        (1382, "t-22-3h4-0 was given a leader that may lack records"),
        (2784, "big-a-0 is being reassigned: [4, 2] → [1, 2, 4]"),
        (2787, "big-a-0 has been reassigned to [1, 2, 4]"),
        (2790, "big-a-5 is no longer reassigned and stays with [1, 2]"),
        (4216, "t-31-70e-0 has 4 in sync and no longer 1 and 2: [1, 2, 3] → [3, 4]"),
    } <= sentences


@pytest.mark.parametrize("covers", [235, 1383, 4000])
def test_a_table_that_goes_on_gets_the_rows_that_it_lacks(
    tmp_path: Path, sample: tuple[pa.Table, list[tuple[MetadataImage, MetadataImage]]], covers: int
) -> None:
    log = lake_of(tmp_path / "lake", commits=2)
    end = next(batch.last_offset for batch in batches_between(covers, LAST_OFFSET))
    (rows,) = fold_into(log, [EventsWriter()], covers=end)
    whole = sample[0].to_pylist()
    assert rows.to_pylist() == [row for row in whole if row["offset"] > end]


def test_secrets_are_not_in_the_table(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    secret, salt = "hunter2-in-clear", b"salty-salt-bytes"
    broker, user = 4, "alice"
    log.append(
        [
            data(
                0,
                r.ConfigRecord(resource_type=broker, resource_name="1", name="ssl.keystore.password", value=secret),
                r.ConfigRecord(resource_type=broker, resource_name="1", name="my.own.thing", value=secret),
                r.UserScramCredentialRecord(
                    name=user, mechanism=1, salt=salt, stored_key=salt, server_key=salt, iterations=4096
                ),
            ),
            data(3, r.ConfigRecord(resource_type=broker, resource_name="1", name="my.own.thing", value=secret + "2")),
        ]
    )
    (rows,) = fold_into(log, [EventsWriter()])
    shown = str(rows.to_pylist())
    assert "ssl.keystore.password" in shown
    assert "user alice" in shown
    assert secret not in shown
    assert salt.hex() not in shown
    assert "salt" not in shown
    (changed,) = [row for row in rows.to_pylist() if row["offset"] == 3]
    assert (changed["before"], changed["after"]) == ("(redacted)", "(redacted)")
    assert changed["broker"] == 1


def test_the_load_of_a_snapshot_is_no_event(tmp_path: Path) -> None:
    made = MetadataLog.create(tmp_path / "lake", start_offset=2)
    snapshot = [data(0, topic(0), partition(0, replicas=(1, 2)))]
    made.add_snapshot(SnapshotFacts(end_offset=2, epoch=1, last_contained_log_timestamp=0), snapshot)
    change = r.PartitionChangeRecord(topic_id=topic(0).topic_id, partition_id=0, isr=(1,))
    made.append([data(2, change)])
    (rows,) = fold_into(made, [EventsWriter()])
    assert [row["kind"] for row in rows.to_pylist()] == ["isr_shrank"]


def test_what_was_undone_within_a_batch_does_not_show(tmp_path: Path) -> None:
    log = MetadataLog.create(tmp_path / "lake")
    log.append([data(0, topic(0), partition(0, replicas=(1, 2)))])
    away, back = (
        r.PartitionChangeRecord(topic_id=topic(0).topic_id, partition_id=0, isr=isr) for isr in ((1,), (1, 2))
    )
    log.append([data(2, away, back)])
    (rows,) = fold_into(log, [EventsWriter()])
    assert [(row["offset"], row["kind"]) for row in rows.to_pylist()] == [(1, "topic_created")]


def test_the_columns_are_described() -> None:
    assert all(comment for _, comment in COLUMNS)
    assert EVENTS.schema.names[0] == "offset"
