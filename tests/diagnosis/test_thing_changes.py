"""The lines of changes of things: transactions, names that are used again, snapshots, damage, random histories."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis.blaming import blame, holding_since, newest_changes
from kraftlake.diagnosis.thing_changes import Change, changes_of
from kraftlake.diagnosis.things import Thing
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import NoSuchThingError, OffsetError, UnknownRecordError
from tests.cli.running import DIRECTORY
from tests.diagnosis.brute_force import lines_of, parsed, steps
from tests.histories import histories
from tests.replay import made_logs as log

ISR = Thing.parse("topic/topic-1/partition/0/isr")


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, **fields)


def source_of(batches: Sequence[RecordBatch], start: int = 0, *ends: int) -> Source:
    """A log in memory, from `start` on, with snapshots that end at `ends`."""
    return Source(log.trimmed(batches, start, *ends), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]


def line(source: Source, thing: Thing, at: int | None = None, *, lenient: bool = False) -> list[tuple[Any, ...]]:
    at = source.last_image_offset if at is None else at
    found = changes_of(source, [thing], at, lenient=lenient).lines.get(thing, [])
    return [(one.offset, one.since, one.type, one.before, one.after) for one in found]


def test_a_record_of_a_transaction_has_its_own_offset_and_the_one_at_which_it_takes_effect() -> None:
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1), log.partition(1)], [log.begin(), change(isr=(1,))],
        [change(isr=(1, 2)), change(isr=(2,))], [log.end()], [log.begin(), change(isr=(1,))], [log.abort()],
    )  # fmt: skip
    source = source_of(batches)
    created = (3, 3, "PARTITION_RECORD", None, [1, 2])
    assert line(source, ISR, 7) == [created], "the transaction is open"
    in_transaction = [(5, 8, [1, 2], [1]), (6, 8, [1], [1, 2]), (7, 8, [1, 2], [2])]
    assert line(source, ISR) == [
        created,
        *((offset, since, "PARTITION_CHANGE_RECORD", before, after) for offset, since, before, after in in_transaction),
    ]
    form = blame(source, ISR, source.last_image_offset).to_json()
    assert form == {
        "thing": ISR.text, "offset": 7, "timestamp": log.TIME + 6, "epoch": 1, "type": "PARTITION_CHANGE_RECORD",
        "before": [1, 2], "after": [2], "effectiveOffset": 8,
    }  # fmt: skip


def test_a_topic_of_the_same_name_is_another_one() -> None:
    config = r.ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="1")
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1, "foo"), log.partition(1), config],
        [r.RemoveTopicRecord(topic_id=log.uuid_of(1))], [log.topic(2, "foo"), log.partition(2, leader=2)],
    )  # fmt: skip
    source = source_of(batches)
    removed, created = (5, 5, "REMOVE_TOPIC_RECORD"), (6, 6, "TOPIC_RECORD")
    assert line(source, Thing.topic("foo"))[1:] == [(*removed, True, None), (*created, None, True)]
    assert line(source, Thing.partition("foo", 0, "leader"))[1:] == [
        (*removed, 1, None), (7, 7, "PARTITION_RECORD", None, 2),
    ]  # fmt: skip
    assert line(source, Thing.config("TOPIC", "foo", "retention.ms"))[1:] == [(*removed, "1", None)]
    with pytest.raises(NoSuchThingError, match=r"REMOVE_TOPIC_RECORD at offset 5 removed it, --at-offset 4"):
        blame(source, Thing.parse("config/TOPIC/foo/retention.ms"), 7)


@given(histories(), st.data())
def test_random_histories_have_the_lines_that_brute_force_finds(
    history: list[ApiMessageAndVersion], data: st.DataObject
) -> None:
    batches, offset = [], 0
    while offset < len(history):
        count = data.draw(st.integers(1, 8))
        some = history[offset : offset + count]
        batches.append(RecordBatch.of(offset, 1, log.TIME + offset, some))
        offset += len(some)
    expected = lines_of(steps(batches))
    lines = changes_of(source_of(batches), parsed(expected), offset - 1).lines
    assert {
        thing.text: [(one.offset, one.since, str(one.type), one.before, one.after) for one in found]
        for thing, found in lines.items()
    } == expected


def test_a_log_that_starts_above_0_knows_the_values_of_its_snapshot_since_it_or_earlier() -> None:
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1), log.partition(1)], [change(isr=(1,))], [r.NoOpRecord()],
        [change(isr=(2,), leader=2)],
    )  # fmt: skip
    source = source_of(batches, 5, 5)
    assert line(source, ISR) == [(4, 4, None, None, [1]), (6, 6, "PARTITION_CHANGE_RECORD", [1], [2])]
    whole = newest_changes(source, [ISR, Thing.topic("topic-1")], 5)
    assert all(one.or_earlier for one in whole.values())
    assert whole[ISR].to_json() == {
        "thing": ISR.text, "offset": 4, "timestamp": log.TIME + 4, "epoch": 1, "type": None, "before": None,
        "after": [1], "orEarlier": True,
    }  # fmt: skip
    with pytest.raises(OffsetError):
        blame(source, ISR, 3)


def copied(folder: Path, *patterns: str) -> Source:
    for pattern in patterns:
        for file in DIRECTORY.glob(pattern):
            shutil.copy(file, folder)
    return kraftlake.open(folder)


def test_of_a_broken_log_only_what_follows_a_snapshot_counts(tmp_path: Path) -> None:
    whole = kraftlake.open(DIRECTORY)
    at = whole.last_image_offset
    things = parsed(["broker/1/fenced", "topic/elr-a", "topic/elr-a/partition/0/isr", "feature/metadata.version"])
    expected = newest_changes(whole, things, at)
    source = copied(tmp_path, "*0000.log", "*5488.log", "*.checkpoint")
    found = newest_changes(source, things, 2000)
    assert found == newest_changes(whole, things, 2000)
    assert not any(one.or_earlier for one in found.values())
    shutil.copy(next(DIRECTORY.glob("*3532.log")), tmp_path)
    log_file = next(tmp_path.glob("*0000.log"))
    content = bytearray(log_file.read_bytes())
    content[len(content) // 2] ^= 1
    log_file.write_bytes(content)
    found = newest_changes(kraftlake.open(tmp_path), things, at)
    assert {thing: one.after for thing, one in found.items()} == {thing: one.after for thing, one in expected.items()}
    for thing, one in found.items():
        assert one.or_earlier or one == expected[thing]
    assert not found[things[0]].or_earlier
    assert found[things[1]].or_earlier


def test_a_snapshot_file_knows_values_and_no_records() -> None:
    snapshot = kraftlake.open(next(DIRECTORY.glob("*4593-*.checkpoint")))
    found = snapshot.blame("topic/elr-a/partition/0/replicas")
    assert (found.offset, found.type, found.after, found.or_earlier) == (4592, None, [2, 3, 4], True)
    with pytest.raises(OffsetError, match="one image"):
        snapshot.blame("topic/elr-a", 458)


def test_an_unknown_record_stops_a_strict_reading_and_a_lenient_one_skips_it() -> None:
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1), log.partition(1)], [log.UNKNOWN], [change(isr=(1,))],
        [change(isr=(2,), leader_recovery_state=7)],
    )  # fmt: skip
    source = source_of(batches)
    with pytest.raises(UnknownRecordError, match="offset 4"):
        line(source, ISR)
    assert line(source, ISR, 3) == [(3, 3, "PARTITION_RECORD", None, [1, 2])]
    changes = changes_of(source, [ISR], source.last_image_offset, lenient=True)
    assert [one.after for one in changes.lines[ISR]] == [[1, 2], [1]]
    assert [record.offset for record in changes.skipped] == [4, 6]
    assert source.image(lenient=True).topics.get_partition(log.uuid_of(1), 0).isr == (1,)  # type: ignore[union-attr]


def test_a_state_holds_since_the_first_change_of_its_last_run() -> None:
    batches = log.log_of(
        1, [log.topic(1), log.partition(1)], [change(isr=(1,))], [change(isr=(1, 2))], [change(isr=(2,))],
        [change(isr=(1,))],
    )  # fmt: skip
    source = source_of(batches)
    found: list[Change] = changes_of(source, [ISR], source.last_image_offset).lines[ISR]
    since = holding_since(found, lambda isr: len(isr) < 2)
    assert since is not None
    assert since.since == 5
    assert holding_since(found, lambda isr: len(isr) == 2) is None
    assert holding_since(found, lambda isr: isr is not None) == found[0]
