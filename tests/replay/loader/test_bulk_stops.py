"""What the compiled loops stop in front of: objects take over; that and what follows come out the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import uuid_of
from tests.replay.loader.test_bulk import batches_of, outcome, partition

WIDE = tuple(range(1, 1026))


def topic(name: str, number: int) -> ApiMessageAndVersion:
    return ApiMessageAndVersion(TopicRecord(name=name, topic_id=uuid_of(number)), 0)


UNUSUAL = {
    "a list of more than 1,024 elements": [topic("a", 1), partition(0, *WIDE, topic=1)],
    "a name that is not ASCII": [topic("grün", 1), partition(0, 1, 2, topic=1)],
    "a name with a newline": [topic("a\nb", 1), partition(0, 1, topic=1)],
    "a name that is longer than a topic's": [topic("n" * 250, 1), partition(0, 1, topic=1)],
    "partition ids with gaps": [topic("a", 1), partition(7, 1, topic=1), partition(3, 2, topic=1)],
    "a topic's id brought anew": [topic("a", 1), partition(0, 1, topic=1), topic("a", 1), partition(1, 2, topic=1)],
    "more replicas than a row holds": [topic("a", 1), partition(0, 1, 2, 3, 4, 5, topic=1)],
}


@pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=list(UNUSUAL))
def test_unusual_records_in_bulk_give_the_same_as_record_by_record(unusual: list[ApiMessageAndVersion]) -> None:
    plain = [topic("plain", 8), partition(0, 1, 2, 3, topic=8)]
    after = [topic("after", 9), partition(0, 3, 2, 1, topic=9)]
    batches = batches_of([*plain, *unusual, *after], (3,))
    last = batches[-1].last_offset
    answer = outcome(batches, last, bulk=True)
    assert answer == outcome(batches, last)
    assert {"plain", "after"} <= {*answer[0]["topics"]}


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_compressed_batches_are_read_one_by_one_and_the_following_ones_in_bulk(compression: str) -> None:
    batches = batches_of([topic("a", 1), *[partition(number, 1, 2, topic=1) for number in range(8)]], (3,))
    compressions = ("none", compression, "none")
    data = b"".join(map(encode_batch, batches, compressions))
    parts = list(read_values(memoryview(data), file="f", position=0))
    assert [type(part) for part in parts] == [BatchValues, RecordBatch, BatchValues]
    assert [value for part in parts for batch in batches_in(part) for value in batch.values] == [
        value for batch in batches for value in batch.values
    ]


def batches_in(part: BatchValues | RecordBatch) -> Iterator[RecordBatch]:
    if isinstance(part, RecordBatch):
        yield part
    else:
        yield from part.batches(part.base_offset)
