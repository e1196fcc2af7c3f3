"""The compiled CRC32C, by the processor's instruction and by tables, beside the one that is used everywhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crc32c as reference
import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kernels.aot.compiled import Instruction, Kernel
from kraftlake.kernels.batches import checksum
from tests.kernels.aot.test_compiled import look_again


def bytes_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@given(st.binary(max_size=100), st.integers(0, 20))
def test_the_checksum_is_crc32c(data: bytes, start: int) -> None:
    start = min(start, len(data))
    assert checksum.crc32c(bytes_of(data), start, len(data)) == reference.crc32c(data[start:])


LENGTHS = [767, 768, 769, 776, 781, 5_376, 5_389]


@pytest.mark.parametrize("length", LENGTHS)
def test_the_checksum_of_long_batches_is_crc32c(length: int) -> None:
    data = random.Random(length).randbytes(length + 5)
    assert checksum.crc32c(bytes_of(data), 5, len(data)) == reference.crc32c(data[5:])


@pytest.fixture
def by_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The same function as a processor without the instruction has it."""
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path))
    look_again()
    instruction: Instruction = checksum._after_eight
    lacking = Instruction(instruction.name, feature="of-no-processor", otherwise=instruction.otherwise)
    monkeypatch.setattr(checksum, "_after_eight", lacking)
    yield Kernel(checksum.crc32c.function, inline=False)  # type: ignore[attr-defined]
    look_again()


def test_tables_do_where_the_processor_has_no_instruction(by_tables: Any) -> None:
    for length in (0, 7, 8, 100, *LENGTHS):
        data = random.Random(length).randbytes(length)
        assert by_tables(bytes_of(data), 0, length) == reference.crc32c(data)


def test_the_instruction_is_looked_for_by_the_name_that_llvm_gives_it() -> None:
    known = checksum._after_eight.feature in llvm.get_host_cpu_features()
    assert known == llvm.get_process_triple().startswith("x86_64"), "elsewhere the tables do"
