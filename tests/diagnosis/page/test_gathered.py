"""The columns of a page hold the image of every moment, and the sentences of `kraftlake events`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kraftlake
from kraftlake.diagnosis.page.gathered import Gatherer
from kraftlake.diagnosis.page.packing import packed
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.tables.events.log_events import LogEvents
from tests.cli.made_logs import batch_of
from tests.cli.running import DIRECTORY
from tests.diagnosis.page.unpacked import Unpacked
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import reference_image, small_log, trimmed
from tests.tables.events.test_events_writer import InMemory

Partitions = dict[tuple[str, int], Any]


def partitions_of(image: MetadataImage) -> Partitions:
    """The states of an image as a page has them, by object."""
    found = {}
    for topic in image.topics.topics_by_id().values():
        for number, state in topic.partitions.items():
            replicas, adding = state.replicas, state.adding_replicas
            missing = [one for one in replicas if one not in state.isr and one not in adding]
            moving = bool(adding or state.removing_replicas)
            flags = (state.leader < 0) + 2 * bool(missing) + 4 * moving + 8 * int(state.leader_recovery_state)
            lists = (replicas, state.isr, adding, state.removing_replicas, state.elr, state.last_known_elr)
            found[str(topic.id), number] = [state.leader, *map(list, lists), flags]
    return found


def brokers_of(image: MetadataImage) -> dict[int, int]:
    return {
        id_: 2 if broker.fenced else 3 if broker.in_controlled_shutdown else 1
        for id_, broker in image.cluster.brokers.items()
    }


def page_of(reader: Any, first: int | None = None, last: int | None = None) -> Unpacked:
    events = LogEvents(reader, first, last)
    gatherer = Gatherer(events.begin)
    for chunk in events.chunks():
        gatherer.take(chunk)
    gatherer.end(reader.end_offset - 1 if last is None else last, 5)
    return Unpacked(packed(gatherer.gathered(), {}))


def check(page: Unpacked, reader: Any, first: int | None, last: int | None) -> None:
    """Hold a page against the image after each change, and against the rows of `events/`."""
    changes = LogChanges(reader, first, last)
    begin = changes.loader.image
    if not begin.is_empty():
        assert page.offsets[0] == begin.offset
        assert page.at(begin.offset) == partitions_of(begin)
        assert page.brokers_at(begin.offset) == brokers_of(begin)
    for change in changes:
        assert page.at(change.offset) == partitions_of(change.image), change.offset
        assert page.brokers_at(change.offset) == brokers_of(change.image), change.offset
    rows = [row for table in LogEvents(reader, first, last) for row in table.to_pylist()]
    assert page.sentences() == [(row["offset"], row["kind"], row["sentence"]) for row in rows]
    assert page.offsets == sorted(set(page.offsets))
    assert page.offsets[-1:] == [] or page.offsets[-1] == (reader.end_offset - 1 if last is None else last)


@pytest.fixture(params=[0, 1 << 40], ids=["many at once", "batch by batch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read many batches at once everywhere, or nowhere."""
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("first", "last"), [(310, 1664), (2784, 2787)])
def test_a_range_of_a_real_log(first: int, last: int) -> None:
    reader = kraftlake.open(DIRECTORY).reader
    check(page_of(reader, first, last), reader, first, last)


@pytest.mark.usefixtures("way")
@given(log=metadata_logs(), at=st.integers(0, 40), size=st.integers(0, 60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_any_range_of_any_log(log: Sequence[RecordBatch], at: int, size: int) -> None:
    end = log[-1].last_offset
    first, last = min(at, end) or None, min(at + size, end)
    reader = InMemory(list(log))
    check(page_of(reader, first, last), reader, first, last)


def test_rows_are_in_the_order_of_names_and_numbers() -> None:
    page = page_of(kraftlake.open(DIRECTORY).reader)
    named = [(page.topics[of], of, number) for of, number in zip(page.rowTopics, page.rowPartitions, strict=True)]
    assert named == sorted(named)
    assert len(page.rows) == len(set(page.rows)) == 592


def test_configs_are_of_the_topic_that_had_the_name_then() -> None:
    def topic(number: int) -> list[Message]:
        id_ = Uuid(bytes(15) + bytes([number]))
        there = r.PartitionRecord(partition_id=0, topic_id=id_, replicas=(1,), isr=(1,), leader=1)
        return [r.TopicRecord(name="foo", topic_id=id_), there]

    setting = r.ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="5")
    other = r.ConfigRecord(resource_type=2, resource_name="never-there", name="retention.ms", value="5")
    removed = r.RemoveTopicRecord(topic_id=Uuid(bytes(15) + b"\1"))
    log = [
        batch_of(0, *topic(1)),
        batch_of(2, setting),
        batch_of(3, removed),
        batch_of(4, *topic(2)),
        batch_of(6, setting),
    ]
    page = page_of(InMemory([*log, batch_of(7, other)]))
    ids = [None if topic < 0 else page.topicIds[topic] for topic in page.eventTopics]
    first, second = (str(Uuid(bytes(15) + bytes([number]))) for number in (1, 2))
    assert [kind for _, kind, _ in page.sentences()] == [
        "topic_created", "config_changed", "topic_deleted", "config_changed", "topic_created", "config_changed",
        "config_changed",
    ]  # fmt: skip
    assert ids == [first, first, first, first, second, second, None]


def test_a_log_that_ends_with_its_first_snapshot_has_one_moment() -> None:
    reader = trimmed(small_log(), 8, 10)
    page = page_of(attrs.evolve(reader, records=reader.records[:2]))
    assert page.offsets == [9]
    assert page.at(9) == partitions_of(reference_image(small_log(), 9))


def test_a_page_of_a_whole_log_begins_with_its_first_change(tmp_path: Path) -> None:
    source = kraftlake.open(DIRECTORY)
    source.page(tmp_path / "page.html")
    page = Unpacked.of_page(tmp_path / "page.html")
    assert page.at(source.end_offset - 1) == partitions_of(source.image())
    assert page.sentences() == [(e["offset"], e["kind"], e["sentence"]) for e in source.events()]
    last_time = source.last_time
    assert last_time is not None
    assert page.times[-1] == round(last_time.timestamp() * 1000)
    assert not page.about["begins"]
