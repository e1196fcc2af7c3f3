from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftlake.kafka_files.check import check_directory
from kraftlake.kafka_files.directory import open_directory
from kraftlake.kafka_files.problem import Problem
from kraftlake.records.batch import encode_batch
from kraftlake.records.batch_header import CRC_FROM
from tests.kafka_files.sample_files import CRASH_TORN, KAFKA_44, NEWEST_44, SAMPLES, SEGMENTS_44, copy_of, no_ops


def problems(folder: Path) -> list[Problem]:
    return list(check_directory(open_directory(folder)))


@pytest.mark.parametrize("sample", ["kafka-4.4", "legacy-33"])
def test_a_sound_log_has_no_problems(sample: str) -> None:
    assert problems(SAMPLES / sample / "log") == []


def test_a_torn_tail_is_no_problem_of_a_crashed_log() -> None:
    torn = open_directory(CRASH_TORN).torn

    assert problems(CRASH_TORN) == []
    assert torn is not None
    assert (torn.file, torn.position, torn.offset) == ("00000000000000002265.log", 61042, 3467)


def test_every_problem_is_reported_not_only_the_first(tmp_path: Path) -> None:
    folder = copy_of(KAFKA_44, tmp_path)
    first = bytearray((folder / SEGMENTS_44[0]).read_bytes())
    first[70] ^= 1  # the batch of offset 0
    first[182 + 70] ^= 1  # the batch of offset 2
    (folder / SEGMENTS_44[0]).write_bytes(first)
    (folder / SEGMENTS_44[1]).unlink()
    os.truncate(folder / SEGMENTS_44[3], 14109 - 5)
    os.truncate(folder / NEWEST_44, 60853 - 75)

    found = [(p.file, p.position, p.offset, p.in_snapshot) for p in problems(folder)]

    assert found == [
        (SEGMENTS_44[0], 0, 0, False),
        (SEGMENTS_44[0], 182, 2, False),
        (SEGMENTS_44[2], 0, 2027, False),
        (NEWEST_44, 60778, 812, True),
    ]


def test_an_overlap_and_an_epoch_that_goes_down_are_reported(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(encode_batch(no_ops(0, 5, epoch=3)))
    (tmp_path / f"{4:020d}.log").write_bytes(encode_batch(no_ops(4, 2, epoch=2)) + encode_batch(no_ops(6, 2, epoch=3)))

    messages = [(p.offset, p.message) for p in problems(tmp_path)]

    assert messages == [
        (4, "this segment starts at offset 4, but the one before it goes up to 4"),
        (4, "a batch of epoch 2 after one of epoch 3"),
    ]


def test_a_batch_with_a_good_crc_and_broken_records_is_reported(tmp_path: Path) -> None:
    from google_crc32c import value as crc32c

    broken = bytearray(encode_batch(no_ops(1, 2)))
    broken[62] = 0x7F  # a record's length
    broken[17:21] = crc32c(bytes(broken[CRC_FROM:])).to_bytes(4, "big")
    content = encode_batch(no_ops(0)) + bytes(broken) + encode_batch(no_ops(3))
    (tmp_path / f"{0:020d}.log").write_bytes(content)

    (problem,) = problems(tmp_path)

    assert (problem.position, problem.offset) == (len(encode_batch(no_ops(0))), 1)
    assert "good CRC" in problem.message
