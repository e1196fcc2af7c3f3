from __future__ import annotations

import pytest

from kraftlake import kernels
from kraftlake.delta import MetadataDelta, TopicsDelta, topics_delta
from kraftlake.image import MetadataImage, MetadataProvenance, TopicsImage
from kraftlake.image.partition_rows import registration_of
from kraftlake.records import metadata_records as r
from tests.replay.made_logs import partition, topic

pytestmark = pytest.mark.skipif(not kernels.available(), reason="numba is missing")


@pytest.fixture
def in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_delta, "MERGE_FROM", 1)
    monkeypatch.setattr(topics_delta, "MERGE_COLD_FROM", 1)


def base_image() -> TopicsImage:
    delta = MetadataDelta(MetadataImage.EMPTY)
    records = [record for number in range(20) for record in (topic(number), partition(number, replicas=(1, 2, 3)))]
    delta.replay_all(records)
    return delta.apply(MetadataProvenance(offset=40, epoch=1)).topics


def changes() -> list[r.PartitionChangeRecord]:
    """An ISR, an unclean election, and lists that don't fit a row, some of them twice."""
    made = []
    for number in range(0, 20, 2):
        topic_id = topic(number).topic_id
        made.append(r.PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=(2,), leader=2))
        if number % 3 == 0:
            made.append(
                r.PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=(3,), leader=3, leader_recovery_state=1)
            )
        if number % 4 == 0:
            made.append(r.PartitionChangeRecord(topic_id=topic_id, partition_id=0, adding_replicas=(4,)))
    return made


@pytest.mark.usefixtures("in_bulk")
def test_the_rows_are_the_states_before_and_after() -> None:
    image = base_image()
    for _ in range(2):  # the second time the base has patches
        delta = TopicsDelta(image)
        for record in changes():
            delta.keep(record)
        rows = delta.changed_rows()
        assert rows is not None
        after = delta.apply()
        assert len(rows.numbers) == 10
        for number, before_row, after_row in zip(rows.numbers, rows.before, rows.after, strict=True):
            name = rows.table.names[int(number)]  # one partition a topic
            for held, row in ((image, before_row), (after, after_row)):
                found = held.get_topic(name)
                assert found is not None
                state = registration_of(tuple(row.tolist()), rows.heap, rows.directories)
                assert state == found.partitions[0]
        assert rows.unclean_elections == 4
        assert rows.elr_elections == 0
        image = after


@pytest.mark.usefixtures("in_bulk")
@pytest.mark.parametrize("record", [topic(99), r.RemoveTopicRecord(topic_id=topic(3).topic_id)], ids=["new", "gone"])
def test_there_are_none_where_topics_come_or_go(record: r.TopicRecord | r.RemoveTopicRecord) -> None:
    delta = TopicsDelta(base_image())
    for change in changes():
        delta.keep(change)
    if isinstance(record, r.TopicRecord):
        delta.keep(record)
    else:
        delta.replay_remove_topic(record)
    assert delta.changed_rows() is None


def test_there_are_none_where_few_records_were_merged_as_objects() -> None:
    delta = TopicsDelta(base_image())
    delta.keep(changes()[0])
    assert delta.changed_rows() is None
    assert len(delta.changed_topics) == 1
