from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake import kernels
from kraftlake.delta import TopicsDelta
from kraftlake.image.partition_rows import registration_of
from kraftlake.image.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from tests.histories import histories

pytestmark = pytest.mark.skipif(not kernels.available(), reason="numba is not installed")

_KINDS = (r.TopicRecord, r.PartitionRecord, r.PartitionChangeRecord, r.RemoveTopicRecord, r.ClearElrRecord)


def replayed(image: TopicsImage, records: list[ApiMessageAndVersion]) -> TopicsImage:
    delta = TopicsDelta(image)
    for record in records:
        if isinstance(record.message, r.RemoveTopicRecord):
            delta.replay_remove_topic(record.message)
        else:
            delta.keep(record.message)  # type: ignore[arg-type]
    return delta.apply()


@given(history=histories(topics_only=True, max_steps=60), base=st.integers(0, 60))
def test_each_note_is_the_state_after_its_record_at_a_place_that_never_changes(
    history: list[ApiMessageAndVersion], base: int
) -> None:
    from kraftlake.delta.noting_change import NotingChange

    records = [record for record in history if isinstance(record.message, _KINDS)]
    image = replayed(TopicsImage.EMPTY, records[:base])
    change = NotingChange(image.rows())
    for record in records[base:]:
        value = np.frombuffer(encode_value(record.message, record.version), np.uint8)
        stop, notes = change.note(value, np.zeros(1, np.int64), np.full(1, len(value), np.int64))
        if not stop:
            return  # a name that is not ASCII, and the like
        before, image = image, replayed(image, [record])
        topics, partitions = change.topics_at(notes.places).tolist(), change.partitions_at(notes.places).tolist()
        heap, directories = change.heap(), change.directory_ids()
        noted = set()
        for index, (topic, partition) in enumerate(zip(topics, partitions, strict=True)):
            state = image.get_partition(change.topic_id(topic), partition)
            noted.add((change.topic_id(topic), partition))
            if notes.removed[index]:
                assert state is None
            else:
                assert registration_of(tuple(notes.rows[index].tolist()), heap, directories) == state
        for name in before.may_differ(image):
            for old in (before.get_topic(name), image.get_topic(name)):
                for partition in old.partitions if old is not None else ():
                    if before.get_partition(old.id, partition) != image.get_partition(old.id, partition):
                        assert (old.id, partition) in noted
