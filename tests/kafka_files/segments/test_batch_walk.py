from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.segments.batch_walk import Damage, Whole, walk
from kraftlake.kafka_files.stored_file import BLOCK_SIZE, BlockFile, StoredFile
from kraftlake.records.batch import encode_batch
from tests.kafka_files.sample_files import bulky, no_ops


def file_of(content: bytes) -> StoredFile:
    import zlib

    blocks = tuple(zlib.compress(content[i : i + BLOCK_SIZE]) for i in range(0, len(content), BLOCK_SIZE))
    return BlockFile(name="x.log", size=len(content), blocks=blocks)


BATCHES = [encode_batch(no_ops(offset, 2, timestamp=-1 if offset % 4 else 5)) for offset in range(0, 20, 2)]


@given(garbage=st.binary(max_size=200), at=st.integers(0, 9))
def test_the_walk_continues_at_the_next_whole_batch_after_damage(garbage: bytes, at: int) -> None:
    content = b"".join(BATCHES[:at]) + garbage + b"".join(BATCHES[at:])

    steps = list(walk(file_of(content)))

    assert [s.header.base_offset for s in steps if isinstance(s, Whole)] == list(range(0, 20, 2))
    begin = sum(map(len, BATCHES[:at]))
    damages = [(s.position, s.end) for s in steps if isinstance(s, Damage)]
    assert damages == ([(begin, begin + len(garbage))] if garbage else [])


def test_a_whole_batch_is_found_after_runs_of_the_bytes_that_mark_it() -> None:
    for run in (13, 14, 100, BLOCK_SIZE - 30, 2 * BLOCK_SIZE + 7):
        content = BATCHES[0] + b"\xff" * run + BATCHES[1]

        steps = list(walk(file_of(content)))

        assert [step.position for step in steps] == [0, len(BATCHES[0]), len(BATCHES[0]) + run]
        assert [step.end for step in steps][-1] == len(content)


def test_a_whole_batch_is_found_after_a_long_run_of_zeros() -> None:
    marker = BATCHES[1][: len(BATCHES[1]) // 2]
    for zeros in (100, BLOCK_SIZE - 10, 3 * BLOCK_SIZE):
        content = BATCHES[0] + bytes(zeros) + BATCHES[1] + bytes(zeros) + marker

        steps = list(walk(file_of(content)))

        first, second = len(BATCHES[0]), len(BATCHES[0]) + zeros
        assert [step.position for step in steps] == [0, first, second, second + len(BATCHES[1])]


def test_positions_and_headers_are_the_same_without_looking_at_bodies() -> None:
    file = file_of(b"".join(BATCHES) + BATCHES[0][:30])

    with_bodies = [(type(s), s.position, s.end) for s in walk(file)]

    assert [(type(s), s.position, s.end) for s in walk(file, headers_only=True)] == with_bodies
    assert len(with_bodies) == 11


def test_a_batch_larger_than_a_read_is_whole() -> None:
    big = encode_batch(bulky(0, 2500))
    assert len(big) > 2 * BLOCK_SIZE
    content = BATCHES[0] + big + BATCHES[1]

    assert all(isinstance(step, Whole) for step in walk(file_of(content)))


def test_a_length_that_no_batch_has_is_not_read_into_memory() -> None:
    content = bytearray(BATCHES[0] + BATCHES[1])
    content[8:12] = (2**31 - 1).to_bytes(4, "big")

    first, second = walk(file_of(bytes(content)))

    assert first == Damage(0, len(BATCHES[0]), "a batch length of 2147483647 bytes")
    assert second.position == len(BATCHES[0])


@given(content=st.binary(max_size=2000), start=st.integers(0, 300))
def test_arbitrary_bytes_are_covered_without_gap_or_overlap(content: bytes, start: int) -> None:
    position = start
    for step in walk(file_of(content), start=start):
        assert step.position == position
        assert step.end > step.position
        position = step.end
    assert position == max(start, len(content))
