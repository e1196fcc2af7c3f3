"""Runs of plain changes, whatever stands between them: the same images, local changes and errors as one by one."""

from __future__ import annotations

from functools import cache

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kernels.replay.change_state import BLOCK
from kraftlake.records.metadata_records import ConfigRecord, NoOpRecord, RemoveTopicRecord
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from tests.histories import uuid_of
from tests.replay.loader.test_bulk import batches_of, change, create, load, outcome, partition

TOPICS, PARTITIONS = 6, 25
SPARSE, WIDE = 1004, 1005
FIRST = 1001


@cache
def base() -> MetadataImage:
    """Six topics of 25 partitions: one with odd partition ids, one with more replicas than a row holds."""
    records = []
    for topic in range(FIRST, FIRST + TOPICS):
        replicas = (1, 2, 3, 4) if topic == WIDE else (1, 2, 3)
        records.append(create(f"t{topic}", topic))
        records += [partition(number + (topic == SPARSE), *replicas, topic=topic) for number in range(PARTITIONS)]
    image = load(batches_of(records, [50]), len(records)).take_image()
    assert len(image.topics.rows().table.sparse) == 1
    return image


def same_as_one_by_one(records: list[ApiMessageAndVersion], *, lenient: bool = False) -> object:
    start = base().provenance.offset + 1
    batches = batches_of(records, [len(records)], start)
    for batch in batches:
        object.__setattr__(batch, "epoch", 50)
    to = start + len(records)
    answer = outcome(batches, to, image=base(), lenient=lenient, bulk=True)
    assert answer == outcome(batches, to, image=base(), lenient=lenient)
    return answer


def remove(topic: int) -> ApiMessageAndVersion:
    return ApiMessageAndVersion(RemoveTopicRecord(topic_id=uuid_of(topic)), 0)


NUMBERS = st.tuples(st.integers(FIRST, FIRST + TOPICS), st.integers(0, PARTITIONS))
PLAIN = st.sampled_from([{"leader": 2}, {"isr": (2, 3)}, {"isr": (3,), "leader": 3}, {"isr": (), "leader": -1}])
CHANGES = st.tuples(NUMBERS, PLAIN).map(lambda drawn: change(drawn[0][1], drawn[0][0], **drawn[1]))
OTHERS = st.one_of(
    NUMBERS.map(lambda at: change(at[1], at[0], adding_replicas=(4,), replicas=(1, 2, 3, 4))),
    NUMBERS.map(lambda at: partition(at[1], 3, 1, topic=at[0])),
    st.integers(FIRST, FIRST + TOPICS).map(remove),
    st.sampled_from(
        [
            ApiMessageAndVersion(NoOpRecord(), 0),
            ApiMessageAndVersion(ConfigRecord(resource_type=4, resource_name="1", name="a" * 30, value="b"), 0),
            create("new", 2001),
            partition(0, 1, 2, topic=2001),
        ]
    ),
)


@given(st.lists(CHANGES, min_size=2 * BLOCK, max_size=3 * BLOCK), st.lists(OTHERS, max_size=5), st.data())
def test_changes_and_what_stands_between_them_are_replayed_as_one_by_one(records, others, data):
    for other in others:
        records.insert(data.draw(st.integers(0, len(records)), "at"), other)
    same_as_one_by_one(records, lenient=True)
    same_as_one_by_one(records)


@pytest.mark.parametrize("topics", [range(FIRST, FIRST + 3), range(FIRST + 2, FIRST - 1, -1), [1001, 1003, 1002]])
def test_changes_of_topics_in_any_order_are_made_where_they_belong(topics):
    records = [change(number, topic, leader=topic - 1000) for topic in topics for number in range(PARTITIONS)]
    image, *_ = same_as_one_by_one(records)
    leaders = {t: {p["leader"] for p in image["topics"][f"t{t}"]["partitions"].values()} for t in topics}
    assert leaders == {1001: {1}, 1002: {2}, 1003: {3}}


@pytest.mark.parametrize("place", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_a_change_of_a_topic_that_is_gone_is_an_error_wherever_it_stands(place):
    changes = [change(number, topic, leader=2) for topic in (1001, 1002, 1003) for number in range(PARTITIONS)]
    _, error = same_as_one_by_one([*changes[:place], remove(1003), change(0, 1003, leader=1), *changes[:5]])
    assert "1003" in str(error) or "topic" in str(error)


def test_a_change_of_a_partition_behind_the_last_is_not_one_of_the_next_topic():
    _, error = same_as_one_by_one([*[change(number, leader=2) for number in range(PARTITIONS + 1)]])
    assert f"no partition {PARTITIONS}" in error


@pytest.mark.parametrize("version", [0, 1, 2])
def test_changes_of_all_versions_are_plain(version):
    records = [change(number, leader=2, isr=(2, 3)) for number in range(PARTITIONS)]
    image, *_ = same_as_one_by_one([ApiMessageAndVersion(record.message, version) for record in records])
    assert {p["leader"] for p in image["topics"]["t1001"]["partitions"].values()} == {2}


@pytest.mark.parametrize("place", [0, 30])
def test_a_change_of_a_version_to_come_is_refused_as_one_by_one(place):
    start = base().provenance.offset + 1
    records = [change(number % PARTITIONS, leader=2) for number in range(40)]
    (batch,) = batches_of(records, [len(records)], start)
    values = [*batch.values]
    values[place] = values[place][:2] + b"\3" + values[place][3:]
    batch = attrs.evolve(batch, epoch=50, values=tuple(values))
    answer = outcome([batch], start + 40, image=base(), bulk=True)
    assert answer == outcome([batch], start + 40, image=base())
    assert f"offset {start + place}" in answer[1]


def test_changes_of_a_topic_with_odd_partition_ids_are_made_where_they_belong():
    image, *_ = same_as_one_by_one([change(number, SPARSE, leader=3) for number in (1, 7)])
    partitions = image["topics"][f"t{SPARSE}"]["partitions"]
    assert {number for number, state in partitions.items() if state["leader"] == 3} == {"1", "7"}


def test_records_of_types_from_128_on_are_passed_on_without_a_stop() -> None:
    one, other, foreign = change(0, FIRST, leader=2), change(1, FIRST, leader=3), b"\x01\xfd\x03\x00rest"
    bulk = BulkChange(base().topics.rows())
    values = [encode_value(one.message, 0), foreign, encode_value(other.message, 0), foreign]
    assert bulk.replay_values(values) == (4, [(1, None), (3, None)])
    long_form = b"\x01\x82\x00\x00" + encode_value(create("t", 2000).message, 0)[3:]  # a topic, its type in two bytes
    assert bulk.replay_values([long_form]) == (1, [])
    assert bulk.topic_number("t") >= 0
