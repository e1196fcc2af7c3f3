"""The CRC32C of kernels, by the processor's instruction and by tables, beside the one that is used everywhere else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kernels.compiled import checksum
from kraftlake.records.crc32c import crc32c

LENGTHS = [7, 8, 767, 768, 769, 776, 781, 5_376, 5_389]
WAYS = pytest.mark.parametrize("by_instruction", [True, False], ids=["instruction", "tables"])


@WAYS
@given(data=st.binary(max_size=100), start=st.integers(0, 20))
def test_the_checksum_is_crc32c(by_instruction: bool, data: bytes, start: int) -> None:
    assert checksum(memoryview(data)[start:], by_instruction) == crc32c(data[start:])


@WAYS
@pytest.mark.parametrize("length", LENGTHS)
def test_the_checksum_of_long_batches_is_crc32c(by_instruction: bool, length: int) -> None:
    data = random.Random(length).randbytes(length + 5)
    assert checksum(memoryview(data)[5:], by_instruction) == crc32c(data[5:])
