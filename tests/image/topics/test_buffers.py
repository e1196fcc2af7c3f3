"""Arrays of numbers in plain memory; no image or version shows what memory held before it was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.topics import buffers
from kraftlake.image.topics.buffers import grown, room, zeros
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_values import read_values
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from tests.histories import histories


def poisoned(size: int) -> bytearray:
    """Memory as another owner may have left it."""
    return bytearray(b"\xa5") * size


@pytest.mark.parametrize("count", [0, 3, buffers.MAPPED_FROM])
def test_an_array_has_the_numbers_that_it_is_asked_for(count: int) -> None:
    assert bytes(zeros("B", count)) == bytes(count)
    assert zeros("i", count, 2).shape == room("i", count, 2).shape == (count, 2)
    larger = grown(zeros("q", count), count + 1)
    assert (len(larger), larger.format, bytes(larger[:count])) == (count + 1, "q", bytes(8 * count))


def loaded(image: MetadataImage, records: list[ApiMessageAndVersion]) -> MetadataImage:
    """The image after records, replayed in bulk as far as possible."""
    data = encode_batch(RecordBatch.of(image.offset + 1, 1, 0, records))
    loader = MetadataBatchLoader(image)
    for values in read_values(memoryview(data), file="f", position=0):
        loader.load_values(values, to_offset=values.last_offset)  # type: ignore[arg-type]
    return loader.take_image()


def versions(image: MetadataImage, records: list[ApiMessageAndVersion]) -> list[Any]:
    """The columns of the journal of records of topics."""
    (values,) = read_values(memoryview(encode_batch(RecordBatch.of(0, 1, 0, records))), file="f", position=0)
    change = BulkChange(image.topics.rows(), of_log=True)
    _, found = change.replay_journaled(values.data, values.starts, values.stops)  # type: ignore[union-attr]
    return [getattr(found, name).tolist() for name in ("records", "places", "before", "after", "did", "created")]


@given(histories(topics_only=True, max_steps=40), st.floats(0.1, 0.9))
def test_memory_shows_nowhere_before_it_is_written(records: list[ApiMessageAndVersion], where: float) -> None:
    cut = max(1, int(len(records) * where))

    def contents() -> list[Any]:
        first = loaded(MetadataImage.EMPTY, records[:cut])
        last = loaded(first, records[cut:]) if cut < len(records) else first
        some = [image_to_json(image) for image in (first, last)]
        journal = versions(first, records[cut:]) if cut < len(records) else []
        return [*some, diff_images(first, last).to_json(), versions(MetadataImage.EMPTY, records), journal]

    with pytest.MonkeyPatch.context() as patch:
        answers = []
        for unset in (bytearray, poisoned):
            patch.setattr(buffers, "_unset", unset)
            answers.append(contents())
    assert answers[0] == answers[1]
