"""Since when partitions have had no leader is what the changes of the log say, one after the other."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis import since
from kraftlake.diagnosis.leaderless import Leaderless, leaderless_since
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records.metadata_records import PartitionChangeRecord
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading import chunks
from tests.cli.running import DIRECTORY
from tests.replay import made_logs as log

Key = tuple[str, str]
ONE = {"topic-1": {"id": str(log.uuid_of(1)), "partitions": {"0": {}}}}
OFFSETS = (458, 1323, 3212, 5316, 5736)


def topics_without_leader(image: MetadataImage) -> dict[str, Any]:
    """The topics of an image in JSON, with their partitions that have no leader."""
    topics = image.to_json()["topics"]
    for topic in topics.values():
        topic["partitions"] = {number: one for number, one in topic["partitions"].items() if one["leader"] < 0}
    return topics


def without_leader(image: MetadataImage) -> set[Key]:
    return {(name, number) for name, topic in topics_without_leader(image).items() for number in topic["partitions"]}


@pytest.fixture(scope="module")
def leaderless_by_changes() -> dict[int, dict[Key, Leaderless]]:
    """What each change says, at OFFSETS."""
    now: dict[Key, Leaderless] = {}
    at_offsets = {}
    for change in kraftlake.open(DIRECTORY).changes():
        topics = change.delta.topics_delta
        for topic_id, topic in ({} if topics is None else topics.changed_topics).items():
            for number, partition in topic.partition_changes.items():
                before, key = change.before.topics.get_partition(topic_id, number), (topic.name, str(number))
                if partition.leader >= 0:
                    now.pop(key, None)
                elif before is None or before.leader >= 0:
                    led_by = None if before is None else before.leader
                    now[key] = Leaderless(change.manifest.provenance.timestamp, led_by)
        at_offsets |= {at: dict(now) for at in OFFSETS if at >= change.offset}
    return at_offsets


def found(source: Source, at: int) -> dict[Key, Leaderless]:
    return leaderless_since(source, topics_without_leader(source.image(at)), at)


def only(entries: dict[Key, Leaderless], keys: set[Key]) -> dict[Key, Leaderless]:
    return {key: one for key, one in entries.items() if key in keys}


def copied(folder: Path, *patterns: str) -> Source:
    for pattern in patterns:
        for file in DIRECTORY.glob(pattern):
            shutil.copy(file, folder)
    return kraftlake.open(folder)


@pytest.fixture(params=[False, True], ids=["batch by batch", "in bulk"])
def any_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is read in either of the two ways there are."""
    from_ = 0 if request.param else 1 << 62
    monkeypatch.setattr(since, "BULK_FROM", from_)
    monkeypatch.setattr(since, "_MANY_PARTITIONS", from_)
    for name in ("BULK_FROM", "BULK_SNAPSHOT_FROM"):
        monkeypatch.setattr(chunks, name, from_)


@pytest.mark.usefixtures("any_way")
@pytest.mark.parametrize("at", OFFSETS)
def test_it_is_what_the_changes_say_at_any_offset_of_a_directory_and_a_lake(
    at: int, leaderless_by_changes: dict[int, dict[Key, Leaderless]], tmp_path: Path
) -> None:
    source = kraftlake.open(DIRECTORY)
    expected = only(leaderless_by_changes[at], without_leader(source.image(at)))
    assert expected
    assert found(source, at) == expected
    import_source(source, tmp_path / "lake")
    assert found(kraftlake.open(tmp_path / "lake"), at) == expected


@pytest.mark.usefixtures("any_way")
def test_a_log_whose_beginning_is_gone_knows_leaders_from_its_snapshot(
    leaderless_by_changes: dict[int, dict[Key, Leaderless]], tmp_path: Path
) -> None:
    source = copied(tmp_path, "*3532.log", "*5488.log", "*4593-*.checkpoint")
    assert found(source, 5736) == only(leaderless_by_changes[5736], without_leader(source.image(5736)))


@pytest.mark.usefixtures("any_way")
def test_of_a_damaged_log_only_the_records_after_its_newest_snapshot_count(tmp_path: Path) -> None:
    source = copied(tmp_path, "*0000.log", "*3532.log", "*5488.log", "*.checkpoint")
    assert found(source, 5736) == found(kraftlake.open(DIRECTORY), 5736)


def test_of_a_log_that_is_damaged_behind_its_newest_snapshot_nothing_is_known(tmp_path: Path) -> None:
    source = copied(tmp_path, "*0000.log", "*3532.log", "*5488.log")
    assert leaderless_since(source, topics_without_leader(source.image(5736, lenient=True)), 5736) == {}


def test_what_the_log_does_not_reach_is_not_guessed(tmp_path: Path) -> None:
    source = copied(tmp_path, "*0000.log", "*4593-*.checkpoint")
    topics = topics_without_leader(kraftlake.open(DIRECTORY).image(1323))
    assert leaderless_since(source, topics, 1323)
    assert leaderless_since(source, topics, 4592) == {}
    snapshot = kraftlake.open(next(tmp_path.glob("*.checkpoint")))
    assert leaderless_since(snapshot, topics, 4592) == {}


def test_only_what_took_the_leader_away_counts_and_no_aborted_transaction() -> None:
    change = functools.partial(PartitionChangeRecord, topic_id=log.uuid_of(1), partition_id=0)
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1), log.partition(1, leader=1)], [change(leader=-1)],
        [change(isr=(2,))], [change(leader=-1, isr=(1,))], [log.begin(), change(leader=2), log.abort()],
        [change(leader=-1)],
    )  # fmt: skip
    source = Source(log.MadeLog(records=tuple(batches)), SourceKind.DIRECTORY, "made", None)
    lost = batches[3]
    expected = {("topic-1", "0"): Leaderless(lost.timestamp, 1)}
    for at in range(lost.base_offset, source.end_offset):
        assert leaderless_since(source, ONE, at) == expected
    assert leaderless_since(source, ONE, lost.base_offset - 1) == {}


def test_a_transaction_takes_the_leader_away_at_its_end() -> None:
    change = PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, leader=-1)
    batches = log.log_of(
        1,
        [log.metadata_version()],
        [log.topic(1), log.partition(1, leader=1)],
        [log.begin()],
        [change],
        [log.end()],
        [change],
    )
    source = Source(log.MadeLog(records=tuple(batches)), SourceKind.DIRECTORY, "made", None)
    assert leaderless_since(source, ONE, batches[5].base_offset - 1) == {}
    answer = leaderless_since(source, ONE, source.end_offset - 1)
    assert answer == {("topic-1", "0"): Leaderless(batches[5].timestamp, 1)}


def test_an_offset_inside_of_a_batch_has_what_is_before_it_in_the_batch() -> None:
    source = kraftlake.open(DIRECTORY)
    lost = {record.message.topic_id: record.offset for record in source.records(403, 458) if record.offset < 458
            and record.message.leader == -1}  # fmt: skip
    topic_id, offset = next(iter(lost.items()))
    topics = topics_without_leader(source.image(458))
    some = {name: topic for name, topic in topics.items() if topic["id"] == str(topic_id)}
    assert leaderless_since(source, some, offset - 1) == {}
    assert leaderless_since(source, some, 458)
