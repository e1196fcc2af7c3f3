"""What a lenient replay is made of: every batch that can be read, and the names of all offsets that can't."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.directory import MetadataDirectory, open_directory
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import RecordBatch, encode_batch
from tests.kafka_files.sample_files import KAFKA_44, SEGMENTS_44, copy_of, no_ops

WHOLE = {batch.base_offset: batch for batch in open_directory(KAFKA_44).batches()}
LACKING = range(2027, 3532)
"""What the spoilt copy lacks."""


def restore(path: Path) -> None:
    path.unlink()
    if int(path.name[:20]) != LACKING.start:
        path.write_bytes((KAFKA_44 / path.name).read_bytes())


def salvaged(directory: MetadataDirectory, first: int, last: int) -> tuple[list[RecordBatch], list[tuple[int, int]]]:
    lost: list[tuple[int, int]] = []
    return list(directory.readable_batches(first, last, lambda *one: lost.append(one[:2]))), lost


@given(offsets=st.tuples(st.integers(0, 5736), st.integers(0, 5736)))
def test_of_a_sound_log_it_gives_what_reading_gives(offsets: tuple[int, int]) -> None:
    first, last = sorted(offsets)
    directory = open_directory(KAFKA_44)

    assert salvaged(directory, first, last) == (list(directory.batches(first, last)), [])


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log without its second segment; the test spoils the others."""
    folder = copy_of(KAFKA_44, tmp_path_factory.mktemp("spoilt"))
    (folder / SEGMENTS_44[1]).unlink()
    return folder


@given(data=st.data(), bit=st.integers(0, 7), batch=st.sampled_from([*WHOLE.values()]))
def test_each_offset_is_either_read_as_it_was_or_named_as_lost(
    spoilt: Path, data: st.DataObject, bit: int, batch: RecordBatch
) -> None:
    name = max(name for name in SEGMENTS_44 if int(name[:20]) <= batch.base_offset)
    # the checksum covers neither the base offset nor the epoch
    place = data.draw(st.integers(8, batch.size_in_bytes - 1).filter(lambda byte: byte not in range(12, 16)))
    content = bytearray((KAFKA_44 / name).read_bytes())
    content[batch.position + place] ^= 1 << bit
    (spoilt / name).write_bytes(content)
    try:
        found, lost = salvaged(open_directory(spoilt), 0, 5736)
    finally:
        restore(spoilt / name)

    assert all(WHOLE[batch.base_offset].values == batch.values for batch in found)
    offsets = [offset for batch in found for offset in range(batch.base_offset, batch.last_offset + 1)]
    offsets += [offset for first, last in lost for offset in range(first, last + 1)]
    assert sorted(offsets) == list(range(5737))


def test_of_two_batches_at_an_offset_the_first_is_taken_and_the_other_reported(tmp_path: Path) -> None:
    write_segment(tmp_path / f"{0:020d}.log", [no_ops(0, 5), no_ops(5, 5)])
    write_segment(tmp_path / f"{7:020d}.log", [no_ops(7, 3), no_ops(10, 3)])

    found, lost = salvaged(open_directory(tmp_path), 0, 12)

    assert [batch.base_offset for batch in found] == [0, 5, 10]
    assert lost == [(7, 7)]


def test_a_batch_of_a_lower_epoch_is_lost(tmp_path: Path) -> None:
    batches = [no_ops(0, epoch=2), no_ops(1, epoch=1), no_ops(2, epoch=2)]
    (tmp_path / f"{0:020d}.log").write_bytes(b"".join(map(encode_batch, batches)))

    found, lost = salvaged(open_directory(tmp_path), 0, 2)

    assert [batch.base_offset for batch in found] == [0, 2]
    assert lost == [(1, 1)]
