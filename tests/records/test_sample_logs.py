"""Real logs: every batch and record of the samples, and what Kafka's dump tool says about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraftlake.records.batch import encode_batch, read_batches
from kraftlake.records.batch_header import COMPRESSIONS
from kraftlake.records.json_form import from_json
from kraftlake.records.log_record import log_records
from kraftlake.records.rows import from_rows, to_rows
from kraftlake.records.serde import encode_control, encode_value
from tests.at_least_one import at_least_one
from tests.records.sample_logs import LOG_FILES, dumped_records, whole_batches

files = pytest.mark.parametrize("path", LOG_FILES, ids=lambda path: f"{path.parts[-4]}-{path.name}")


def test_the_samples_are_there() -> None:
    assert len(LOG_FILES) == 14


@files
def test_every_batch_is_written_as_it_was_read(path: Path) -> None:
    data = path.read_bytes()
    position = 0
    for batch in whole_batches(path):
        assert batch.position == position
        position += batch.size_in_bytes
        assert encode_batch(batch) == data[batch.position : position]
    assert position > 0


@files
def test_every_record_is_written_as_it_was_read(path: Path) -> None:
    for batch in at_least_one(whole_batches(path)):
        for value, read in zip(batch.values, batch.messages(), strict=True):
            again = encode_control(read.message)[1] if batch.control else encode_value(read.message, read.version)
            assert again == value


@files
def test_every_record_is_what_kafkas_dump_tool_says(path: Path) -> None:
    records = [record.to_json() for batch in whole_batches(path) for record in log_records(batch)]
    expected = dumped_records(path)
    assert len(records) == len(expected) > 0
    for record, dumped in zip(records, expected, strict=True):
        assert record == dumped


@files
def test_every_record_is_read_back_from_its_json(path: Path) -> None:
    for batch in at_least_one(whole_batches(path)):
        for record in log_records(batch):
            data = json.loads(json.dumps(record.to_json()["data"]))
            assert from_json(type(record.message), data, record.version) == record.message


@files
def test_batches_become_rows_and_batches_again(path: Path) -> None:
    batches = list(whole_batches(path))
    assert list(from_rows(to_rows(batches))) == batches


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_batches_are_the_same_under_every_compression(compression: str) -> None:
    for batch in at_least_one(whole_batches(LOG_FILES[-2])):
        (again,) = read_batches(encode_batch(batch, compression), file=compression)
        assert again == batch
