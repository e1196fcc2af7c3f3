"""A compiled function that numba can't make any more: the loaders go on with objects, and all is as it would be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraftlake import kernels
from kraftlake.delta import TopicsDelta
from kraftlake.delta.topics.journaled_change import JournaledChange
from kraftlake.image import MetadataImage, TopicsImage, image_to_json
from kraftlake.kernels import (
    batch_walk,
    change_columns,
    local_changes,
    partition_journal,
    row_lists,
    topic_records,
)
from kraftlake.kernels import indexes as index_kernels
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.metadata_records import ClearElrRecord, RemoveTopicRecord
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from kraftlake.replay.reading import chunks
from kraftlake.replay.reading.open_reader import open_reader
from tests.broken_kernels import breaking
from tests.histories import uuid_of
from tests.replay.loader.test_bulk import TIME, batches_of, change, create, load, outcome, partition
from tests.replay.loader.test_metadata_loader import Recorder, Rig

TOPICS, PARTITIONS = 40, 30


def first() -> list[ApiMessageAndVersion]:
    records = []
    for topic in range(1001, 1001 + TOPICS):
        records.append(create(f"t{topic}", topic))
        records += [partition(number, 1, 2, 3, topic=topic) for number in range(PARTITIONS)]
    return records


def few() -> list[ApiMessageAndVersion]:
    return [change(number, 1002, leader=2) for number in range(PARTITIONS)]


def many() -> list[ApiMessageAndVersion]:
    return [change(number, topic, leader=3) for topic in range(1001, 1001 + TOPICS) for number in range(PARTITIONS)]


def topics_come_and_go() -> list[ApiMessageAndVersion]:
    gone = ApiMessageAndVersion(RemoveTopicRecord(topic_id=uuid_of(1003)), 0)
    return [*few(), gone, create("new", 2001), partition(0, 1, 2, topic=2001), partition(7, 1, 2, topic=2001)]


def elr_is_cleared() -> list[ApiMessageAndVersion]:
    elr = {"eligible_leader_replicas": (1,), "last_known_elr": (2,)}
    changes = [change(number, 1002, **elr) for number in range(PARTITIONS)]
    return [*changes, ApiMessageAndVersion(ClearElrRecord(topic_name=""), 0), *few()]


BROKEN = [
    (row_lists.any_differs, many),
    (row_lists.any_differs_at, few),
    (row_lists.scatter, topics_come_and_go),
    (local_changes.local_changes, few),
    (local_changes.hosted_rows, topics_come_and_go),
    (index_kernels.index_ids, few),
    (index_kernels.index_names, topics_come_and_go),
    (topic_records.count_types, many),
    (topic_records.replay, many),
    (change_columns.write_values, elr_is_cleared),
]


@pytest.fixture
def break_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], list[str]]]:
    yield from breaking(monkeypatch)


@pytest.mark.parametrize(
    ("kernel", "then"), BROKEN, ids=[f"{kernel.function.__name__}, {then.__name__}" for kernel, then in BROKEN]
)
def test_a_batch_loader_without_a_kernel_tells_the_same(
    break_kernel: Callable[[Any], list[str]],
    kernel: Any,
    then: Callable[[], list[ApiMessageAndVersion]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = batches_of(first(), [50])
    end = len(first())
    image = load(before, end, bulk=True).take_image()
    assert not kernels._given_up
    after = batches_of(then(), [50], start=end)
    for batch in after:
        object.__setattr__(batch, "epoch", 50)
    last = after[-1].last_offset
    expected = outcome(after, last, image=load(before, end).take_image())
    asked = break_kernel(kernel)
    assert outcome(after, last, image=image, bulk=True) == expected
    assert asked
    assert "numba does not work: " in capsys.readouterr().err


@pytest.mark.parametrize("kernel", [index_kernels.index_ids, topic_records.replay, batch_walk.split_plain])
def test_a_long_lived_loader_without_a_kernel_catches_up_and_publishes_the_same(
    break_kernel: Callable[[Any], list[str]], kernel: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(chunks, "BULK_FROM", 0)
    known = [*first(), *few()]
    (tmp_path / "00000000000000000000.log").write_bytes(b"".join(map(encode_batch, batches_of(known, [50]))))
    last = RecordBatch.of(len(known), 50, TIME, topics_come_and_go())

    def published() -> list[MetadataImage]:
        publisher, rig = Recorder(), Rig(high_watermark=0)
        reader, _ = open_reader(str(tmp_path))
        rig.loader.catch_up(reader)
        rig.install(publisher)
        rig.commit(last)
        assert rig.loader.stopped is None
        return publisher.images

    asked = break_kernel(kernel)
    images = published()
    assert asked
    monkeypatch.setattr(chunks, "BULK_FROM", 1 << 62)
    expected = published()
    assert [image_to_json(image) for image in images] == [image_to_json(image) for image in expected]
    assert len(images) == 2
    assert images == expected


@pytest.mark.parametrize(
    ("kernel", "done"),
    [
        (topic_records.count_types, 0),
        (partition_journal.replay_journaled, 0),
        (change_columns.write_values, PARTITIONS),
    ],
)
def test_notes_end_in_front_of_the_first_record_that_takes_what_is_broken(
    break_kernel: Callable[[Any], list[str]], kernel: Any, done: int
) -> None:
    image = load(batches_of(first(), [50]), len(first())).take_image().topics
    records = elr_is_cleared()
    values = [encode_value(record.message, record.version) for record in records]
    stops = np.cumsum([len(value) for value in values])
    starts = stops - [len(value) for value in values]
    data = np.frombuffer(b"".join(values), np.uint8)
    whole = JournaledChange(image.rows())  # what else it takes is compiled by then
    whole.note(data, starts[:PARTITIONS], stops[:PARTITIONS])
    whole.apply()
    asked = break_kernel(kernel)
    change = JournaledChange(image.rows())
    stop, notes = change.note(data, starts, stops)
    assert asked
    assert stop == done
    assert notes.records.tolist() == list(range(done))
    expected = TopicsDelta(image)
    for record in records[:done]:
        expected.keep(record.message)  # type: ignore[arg-type]
    assert TopicsImage.with_rows(change.apply()) == expected.apply()
