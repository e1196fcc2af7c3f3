from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kernels.compiled import pass_good
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_header import pass_whole
from kraftlake.records.batch_values import BatchValues, read_values
from tests.metadata_log.strategies import logs


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A log's bytes, sound, cut, damaged or with something else behind them."""
    data = bytearray(b"".join(encode_batch(batch) for batch in draw(logs())))
    match draw(st.integers(0, 3)):
        case 0:
            del data[draw(st.integers(0, len(data))) :]
        case 1:
            data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
        case 2:
            data += draw(st.binary(max_size=80))
    return bytes(data)


@given(files())
def test_good_batches_are_passed_as_the_slow_walk_passes_them(data: bytes) -> None:
    assert pass_good(data) == pass_whole(memoryview(data), check_crc=True)


@given(logs())
def test_what_is_found_of_batches_is_what_they_are(batches: list[RecordBatch]) -> None:
    data = b"".join(map(encode_batch, batches))
    found: list[RecordBatch] = []
    for part in read_values(memoryview(data), file="f", position=0):
        found += part.batches(part.base_offset) if isinstance(part, BatchValues) else [part]
    assert found == batches
    assert sum(batch.size_in_bytes for batch in found) == len(data)
