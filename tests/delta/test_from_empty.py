"""The change from the empty image says what the image's own records say."""

from __future__ import annotations

import pytest
from hypothesis import given

from kraftlake.delta.from_empty import delta_from_empty
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics import topics_image
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import BROKER_IDS, histories
from tests.replay.made_logs import partition, topic

AT = MetadataProvenance(offset=9, epoch=1)


@given(histories())
def test_it_is_what_replaying_the_images_records_gives(history: list[ApiMessageAndVersion]) -> None:
    first = MetadataDelta(MetadataImage.EMPTY)
    for record in history:
        first.replay(record.message)
    image = first.apply(AT)
    by_records = MetadataDelta(MetadataImage.EMPTY)
    for record in image.write():
        by_records.replay(record.message)

    delta = delta_from_empty(image)

    assert delta.apply(AT) == image
    assert delta.apply(AT).topics is image.topics or image.topics.is_empty()
    assert delta.topics_delta is not None
    assert by_records.topics_delta is not None
    for broker in BROKER_IDS:
        ours, theirs = (d.topics_delta.local_changes(broker) for d in (delta, by_records))  # type: ignore[union-attr]
        assert ours == theirs
    assert delta.topics_delta.created_topic_ids == by_records.topics_delta.created_topic_ids
    assert delta.metadata_version_changed == by_records.metadata_version_changed
    assert delta.topics_delta.changed_topics.keys() == by_records.topics_delta.changed_topics.keys()
    assert delta.apply(AT) == image, "also when its topics were looked at"
    for broker in BROKER_IDS:
        assert delta.topics_delta.local_changes(broker) == by_records.topics_delta.local_changes(broker)


def test_a_packed_image_is_the_same_without_its_objects_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_image, "PACK_FROM", 10)
    delta = MetadataDelta(MetadataImage.EMPTY)
    for number in range(30):
        delta.replay(topic(number))
        delta.replay(partition(number, replicas=(number % 3, number % 3 + 1), leader=number % 3))
    image = delta.apply(AT)
    assert image.topics.is_large
    taken = delta_from_empty(image)
    assert taken.topics_delta is not None
    assert delta.topics_delta is not None
    for broker in range(5):
        assert taken.topics_delta.local_changes(broker) == delta.topics_delta.local_changes(broker)
    assert taken.apply(AT) == image
