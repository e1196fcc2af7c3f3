"""Bulk replay against the replay of objects: the same images, local changes, skipped records and errors."""

from __future__ import annotations

from contextlib import nullcontext

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.topics import bulk_state
from kraftlake.delta.topics.local_replica_changes import local_changes_to_json
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.runtime.errors import KraftlakeError
from tests.delta.topics.object_change import as_objects, is_of_all
from tests.few_examples import few_examples
from tests.histories import BROKER_IDS, histories, uuid_of
from tests.topic_records import TOPIC_ID, TOPICS, changes, partition_records

TIME = 1_700_000_000_000


def batches_of(records, sizes=(1,), start=0):
    """The records in batches of the given sizes, again and again."""
    batches, offset, turn = [], 0, 0
    while offset < len(records):
        size = sizes[turn % len(sizes)]
        part = records[offset : offset + size]
        batches.append(RecordBatch.of(start + offset, 1 + turn // 7, TIME + turn, part))
        offset, turn = offset + len(part), turn + 1
    return batches


def stretches(batches):
    data = b"".join(encode_batch(batch) for batch in batches)
    return list(read_values(memoryview(data), file="f", position=0))


def load(batches, to, *, image=MetadataImage.EMPTY, lenient=False, bulk=False, rows=False):
    """A loader of the batches: in bulk, record by record as `rows`, or as objects, which are the reference."""
    with nullcontext() if bulk or rows else as_objects():
        return _load(batches, to, MetadataBatchLoader(image, lenient=lenient), bulk)


def _load(batches, to, loader, bulk):
    if not bulk:
        for batch in (batch for batch in batches if batch.base_offset <= to):
            loader.load_batch(batch, to_offset=to)
    else:
        for part in (part for part in stretches(batches) if part.base_offset <= to):
            if isinstance(part, BatchValues):
                loader.load_values(part, to_offset=to)
            else:
                loader.load_batch(part, to_offset=to)
    return loader


def outcome(batches, to, **how):
    """Everything that a replay shows, or the error that it ends with."""
    try:
        loader = load(batches, to, **how)
        topics = loader.delta.topics_delta
        changes = [
            local_changes_to_json(
                None if topics is None else topics.local_changes(broker), broker=broker, from_offset=0, to_offset=to
            )
            for broker in [*range(10), 4999]
        ]
        image = loader.take_image()
    except KraftlakeError as error:
        return type(error), str(error)
    return image_to_json(image, show_secrets=True), image.provenance, changes, loader.skipped


@few_examples
@given(histories(), st.lists(st.integers(1, 9), min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_every_history_replayed_in_bulk_is_the_same(records, sizes, where, end):
    """From the empty image, and from one in mid-history, be it made of objects or packed."""
    batches = batches_of(records, sizes)
    to = int((len(records) - 1) * end)
    assert outcome(batches, to, bulk=True) == outcome(batches, to) == outcome(batches, to, rows=True)
    cut = int((len(records) - 1) * where)
    for base in (load(batches, cut).take_image(), load(batches, cut, bulk=True).take_image()):
        rest = [batch for batch in batches if batch.last_offset > cut]
        before = image_to_json(base)
        expected = outcome(rest, len(records), image=base)
        assert outcome(rest, len(records), image=base, bulk=True) == expected
        assert outcome(rest, len(records), image=base, rows=True) == expected
        assert image_to_json(base) == before


RECORDS = st.lists(
    st.one_of(
        TOPICS.map(lambda m: ApiMessageAndVersion(m, 0)),
        partition_records().map(lambda m: ApiMessageAndVersion(m, 2)),
        partition_records().map(lambda m: ApiMessageAndVersion(m, 2)),
        changes().map(lambda m: ApiMessageAndVersion(m, 2)),
        changes().map(lambda m: ApiMessageAndVersion(m, 2)),
        st.builds(RemoveTopicRecord, topic_id=TOPIC_ID).map(lambda m: ApiMessageAndVersion(m, 0)),
        st.sampled_from([NoOpRecord(), BeginTransactionRecord(), EndTransactionRecord()]).map(
            lambda m: ApiMessageAndVersion(m, 0)
        ),
        st.just(
            ApiMessageAndVersion(r.ConfigRecord(resource_type=2, resource_name="a", name="flush.ms", value="v"), 0)
        ),
        st.sampled_from(["", "", "a", "d", "nobody"]).map(
            lambda name: ApiMessageAndVersion(r.ClearElrRecord(topic_name=name), 0)
        ),
    ),
    min_size=1,
    max_size=60,
)


@few_examples
@given(RECORDS, st.booleans(), st.lists(st.integers(1, 20), min_size=1))
def test_records_that_hardly_fit_together_end_the_same(records, lenient, sizes):
    """Wide lists, ELR, sparse partitions, contradictions: skipped where lenient, else the same error."""
    records = [ApiMessageAndVersion(TopicRecord(name="d", topic_id=uuid_of(1004)), 0), *records]
    batches = batches_of(records, sizes)
    ours = outcome(batches, len(records), lenient=lenient, bulk=True)
    assert ours == outcome(batches, len(records), lenient=lenient)
    assert ours == outcome(batches, len(records), lenient=lenient, rows=True)
    if lenient:
        image, _, _, skipped = ours
        one_by_one = MetadataBatchLoader(lenient=True)
        for batch in batches:
            one_by_one.load_batch(batch)
            last = one_by_one.take_image()
        assert image == image_to_json(last, show_secrets=True)
        assert [one.offset for one in skipped] == [one.offset for one in one_by_one.skipped]


def partition(number, *replicas, topic=1001, **fields):
    message = PartitionRecord(
        topic_id=uuid_of(topic), partition_id=number, replicas=replicas, isr=replicas, leader=replicas[0],
        leader_epoch=0, partition_epoch=0, **fields,
    )  # fmt: skip
    return ApiMessageAndVersion(message, 2)


def create(name="a", topic=1001):
    return ApiMessageAndVersion(TopicRecord(name=name, topic_id=uuid_of(topic)), 0)


def change(number, topic=1001, **fields):
    message = PartitionChangeRecord(topic_id=uuid_of(topic), partition_id=number, **fields)
    return ApiMessageAndVersion(message, 2)


MANY = [create(), *[partition(number, number % 5, number % 5 + 1) for number in range(300)]]


def test_bulk_replay_makes_no_objects_of_common_records():
    loader = load(batches_of([*MANY, change(3, leader=4)], [50]), 400, bulk=True)
    assert is_of_all(loader.delta.topics_delta)
    assert loader.last_offset == len(MANY)
    assert loader.delta.topics_delta.local_changes(4).leaders
    assert loader.take_image().topics.get_topic("a").partitions[3].leader == 4


@pytest.mark.parametrize("at", [0, 60])
def test_records_after_a_metadata_transaction_are_replayed_in_bulk(at):
    """Every cluster's log begins with one: its bootstrap records."""
    marks = [ApiMessageAndVersion(BeginTransactionRecord(), 0), ApiMessageAndVersion(EndTransactionRecord(), 0)]
    records = [*MANY[:at], marks[0], *MANY[at : at + 3], marks[1], *MANY[at + 3 :]]
    batches = batches_of(records, [1])
    if at == 0:  # bootstrap records are none of topics
        records = [*marks, *MANY]
        batches = batches_of(records, [2, 50])
    loader = load(batches, 400, bulk=True)
    assert is_of_all(loader.delta.topics_delta)
    assert loader.last_offset == len(records) - 1
    assert loader.take_image() == load(batches, 400).take_image()


def test_a_delta_goes_on_after_an_image_was_made_of_it():
    loader = MetadataBatchLoader()
    (values,) = stretches(batches_of(MANY, [50]))
    loader.load_values(values, to_offset=299)
    first = loader.delta.apply(loader.last)
    before = image_to_json(first)
    records = [change(3, leader=4), change(3, isr=(4,)), partition(299, 7)]
    for value in stretches([RecordBatch.of(300, 50, TIME, records)]):
        loader.load_values(value, to_offset=400)
    second = loader.delta.apply(loader.last)
    assert image_to_json(first) == before
    assert second.topics.get_topic("a").partitions[3].isr == (4,)
    assert first.topics.get_topic("a").partitions[3].leader == 3


def test_a_few_changes_of_a_large_image_share_its_rows():
    base = load(batches_of(MANY, [50]), 300, bulk=True).take_image()
    after = load(
        [RecordBatch.of(301, 50, TIME, [change(7, leader=1), change(5, leader=2)])], 400, image=base, bulk=True
    )
    image = after.take_image()
    assert image.topics.rows().cells is base.topics.rows().cells
    assert set(base.topics.may_differ(image.topics)) == {"a"}
    assert [p.leader for p in image.topics.get_topic("a").partitions.values()][5:8] == [2, 1, 1]
    again = load([RecordBatch.of(303, 50, TIME, [change(7, leader=9)])], 400, image=image, bulk=True).take_image()
    assert [again.topics.get_topic("a").partitions[n].leader for n in (5, 7)] == [2, 9]
    assert image.topics.get_topic("a").partitions[7].leader == 1


def test_records_that_change_nothing_leave_the_image_itself():
    base = load(batches_of(MANY, [50]), 300, bulk=True).take_image()
    same = load([RecordBatch.of(301, 50, TIME, [partition(3, 3, 4), partition(9, 4, 5)])], 400, image=base, bulk=True)
    assert same.delta.topics_delta is not None
    assert same.take_image().topics is base.topics


def test_a_snapshot_of_what_is_there_leaves_the_image_itself():
    base = load(batches_of(MANY, [50]), 300, bulk=True).take_image().topics
    delta = TopicsDelta(base)
    (values,) = stretches(batches_of(MANY, [50]))
    delta.replay_bulk(values.data, values.starts, values.stops, 0, len(values.starts))
    delta.finish_snapshot()
    assert delta.apply() is base
    delta.replay_bulk(values.data, values.starts, values.stops, 0, 5)
    assert len(delta.apply().get_topic("a").partitions) == 4


def test_an_error_in_bulk_names_the_offset():
    with pytest.raises(KraftlakeError, match=r"offset 301, PARTITION_CHANGE_RECORD.*no partition 300"):
        load(batches_of([*MANY, change(300, leader=1)], [50]), 400, bulk=True)


def test_batches_that_are_compressed_or_of_control_records_come_one_by_one():
    batches = batches_of(MANY, [50])
    data = [encode_batch(batch) for batch in batches]
    data[2] = encode_batch(batches[2], "zstd")
    parts = list(read_values(memoryview(b"".join(data)), file="f", position=0))
    assert [type(part) for part in parts] == [BatchValues, RecordBatch, BatchValues]
    assert [part.base_offset for part in parts] == [0, 100, 150]
    assert parts[-1].last_offset == 300


@pytest.mark.parametrize("at", [16, 20, 30, 60, 100, -10])
def test_damaged_batches_are_left_to_the_reader_that_reports_the_fault(at):
    data = bytearray(b"".join(encode_batch(batch) for batch in batches_of(MANY[:20], [10])))
    data[at] ^= 0x10
    parts = list(read_values(memoryview(data), file="f", position=0))
    assert sum(len(part.starts) for part in parts) in (0, 10)


def test_what_batches_say_is_kept_in_values():
    batches = [attrs.evolve(batch, size_in_bytes=len(encode_batch(batch))) for batch in batches_of(MANY, [7, 3])]
    (values,) = stretches(batches)
    assert list(values.batches(0)) == batches
    assert [batch.base_offset for batch in values.batches(8)] == [batch.base_offset for batch in batches[1:]]
    assert values.size_in_bytes == sum(batch.size_in_bytes for batch in batches)
    assert values.end_at(9).last_offset == 9
    assert BROKER_IDS


def test_images_made_of_many_changes_never_change_when_more_follow():
    base = load(batches_of(MANY, [50]), 300, bulk=True).take_image()
    loader = MetadataBatchLoader(base)
    seen = [(base, image_to_json(base))]
    for turn in range(3):
        records = [change(number, leader=turn) for number in range(turn, 300, 2 + turn)]
        for values in stretches([RecordBatch.of(loader.last_offset + 1, 50, TIME, records)]):
            loader.load_values(values, to_offset=10_000)
        image = loader.delta.apply(loader.last)
        assert image.topics.rows().cells is not base.topics.rows().cells
        assert image.topics.get_topic("a").partitions[turn].leader == turn
        seen.append((image, image_to_json(image)))
    assert [image_to_json(image) for image, _ in seen] == [before for _, before in seen]
    assert loader.delta.topics_delta.local_changes(2).leaders[("a", 2)].partition.leader_epoch == 2


def test_few_changes_that_become_many_are_the_same_as_one_by_one():
    """A delta that begins sparse goes on dense."""
    base = load(batches_of(MANY, [50]), 300, bulk=True).take_image()
    records = [change(number, leader=number % 7, isr=(number % 5,)) for number in (5, 9, *range(0, 299, 3))]
    batches = [RecordBatch.of(301, 50, TIME, records[:2]), RecordBatch.of(303, 50, TIME, records[2:])]
    loader = MetadataBatchLoader(base)
    for batch in batches:
        for values in stretches([batch]):
            loader.load_values(values, to_offset=10_000)
    one_by_one = load(batches, 10_000, image=base)
    for broker in range(7):
        ours, theirs = (each.delta.topics_delta.local_changes(broker) for each in (loader, one_by_one))
        assert ours == theirs
    assert loader.take_image() == one_by_one.take_image()


def test_names_find_room_however_short_those_were_that_it_was_guessed_from(monkeypatch):
    monkeypatch.setattr(bulk_state, "_SAMPLES", 1)
    records = [create("a", 1), *[create(f"{n}".ljust(249, "x"), n) for n in range(2, 100)]]
    batches = batches_of(records, [60])
    in_bulk = load(batches, len(records), bulk=True)
    assert is_of_all(in_bulk.delta.topics_delta)
    assert in_bulk.take_image() == load(batches, len(records)).take_image()


def test_partitions_that_come_in_any_order_are_found_again_however_many_they_are():
    numbers = [(topic, n) for n in reversed(range(400)) for topic in (1001, 1002)]
    records = [create("a", 1001), create("b", 1002), *[partition(n, 1, 2, topic=topic) for topic, n in numbers]]
    records += [change(n, topic, leader=2) for topic, n in numbers]
    parts = [RecordBatch.of(at, 1, TIME, records[at : at + 100]) for at in range(0, len(records), 100)]
    in_bulk = MetadataBatchLoader(MetadataImage.EMPTY)
    for part in parts:  # each finds out by itself how much room it needs
        for values in stretches([part]):
            in_bulk.load_values(values, to_offset=part.last_offset)
    assert is_of_all(in_bulk.delta.topics_delta)
    assert in_bulk.take_image() == load(parts, len(records)).take_image()


@pytest.mark.parametrize("name", ["", "a", "b"])
@pytest.mark.parametrize("count", [2, 120])
def test_eligible_leader_replicas_are_cleared_in_bulk(name, count):
    elr = {"eligible_leader_replicas": (1,), "last_known_elr": (2,)}
    base = load(batches_of([*MANY, *[change(number, **elr) for number in range(0, 300, 7)]], [50]), 400, bulk=True)
    records = [change(number, **elr) for number in range(count)]
    records += [create("b", 1002), *[partition(number, 1, 2, topic=1002, **elr) for number in range(3)]]
    records += [ApiMessageAndVersion(r.ClearElrRecord(topic_name=name), 0), change(0, leader=4)]
    image = base.take_image()
    batches = [RecordBatch.of(base.last_offset + 1, 50, TIME, records)]
    loader = load(batches, 10_000, image=image, bulk=True)
    assert is_of_all(loader.delta.topics_delta)
    one_by_one = load(batches, 10_000, image=image)
    for broker in range(7):
        ours, theirs = (each.delta.topics_delta.local_changes(broker) for each in (loader, one_by_one))
        assert ours == theirs
    after = loader.take_image()
    assert after == one_by_one.take_image()
    left = {t.name for t in after.topics.topics_by_id().values() for p in t.partitions.values() if p.elr}
    assert left == {"a", "b"} - ({name} if name else {"a", "b"})
