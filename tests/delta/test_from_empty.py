"""The change from the empty image says what the image's own records say."""

from __future__ import annotations

from hypothesis import given

from kraftlake.delta import MetadataDelta, delta_from_empty
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import BROKER_IDS, histories

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
    assert delta.topics_delta is not None
    assert by_records.topics_delta is not None
    for broker in BROKER_IDS:
        ours, theirs = (d.topics_delta.local_changes(broker) for d in (delta, by_records))  # type: ignore[union-attr]
        assert ours == theirs
    assert delta.topics_delta.created_topic_ids == by_records.topics_delta.created_topic_ids
    assert delta.metadata_version_changed == by_records.metadata_version_changed
