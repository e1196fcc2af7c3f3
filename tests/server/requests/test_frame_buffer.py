"""Bytes are cut into the frames that were sent, however they arrive."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlake.server.requests.frame_buffer import LENGTH, FrameBuffer
from tests.protocol.fake_nodes import frame


def taken(buffer: FrameBuffer) -> list[bytes]:
    frames = []
    while (one := buffer.next()) is not None:
        frames.append(one)
    return frames


def made_up(size: int) -> bytes:
    return Random(size).randbytes(size)


@settings(deadline=None)
@given(
    frames=st.lists(st.binary(max_size=40) | st.integers(min_value=16_000, max_value=20_000).map(made_up), max_size=6),
    cuts=st.lists(st.integers(min_value=0, max_value=60_000), max_size=8),
    takes_late=st.booleans(),
)
def test_frames_come_out_as_they_were_sent(frames: list[bytes], cuts: list[int], takes_late: bool) -> None:
    sent = b"".join(map(frame, frames))
    buffer, got, begin = FrameBuffer(longest=20_000), [], 0
    for end in (*sorted(min(cut, len(sent)) for cut in cuts), len(sent)):
        if end > begin:
            buffer.add(sent[begin:end])
        begin = end
        if not takes_late:
            got += taken(buffer)
        assert buffer.size == end - sum(len(frame(one)) for one in got)
    assert got + taken(buffer) == frames
    assert buffer.size == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_length_that_no_frame_can_have_is_named(size: int) -> None:
    buffer = FrameBuffer(longest=100)
    buffer.add(frame(bytes(100)) + LENGTH.pack(size))
    assert buffer.next() == bytes(100)
    with pytest.raises(ValueError, match=f"a message of {size} bytes"):
        buffer.next()


def test_an_announced_frame_holds_what_has_arrived_also_in_tiny_pieces() -> None:
    buffer = FrameBuffer(longest=2**31 - 1)
    tracemalloc.start()
    try:
        buffer.add(LENGTH.pack(2**31 - 1))
        for number in range(50_000):
            buffer.add(number.to_bytes(2))
        assert buffer.next() is None
        assert tracemalloc.get_traced_memory()[0] < 150_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("taken", [1, 100_000, 200_000])
@pytest.mark.parametrize("ahead", [1, 10_000, 60_000])
def test_what_is_held_behind_a_frame_is_counted_and_little_more_than_has_arrived(taken: int, ahead: int) -> None:
    buffer = FrameBuffer(longest=2**31 - 1)
    tracemalloc.start()
    try:
        buffer.add(frame(bytes(taken)) + LENGTH.pack(2**31 - 1) + bytes(ahead))
        assert buffer.next() == bytes(taken)
        assert buffer.size == LENGTH.size + ahead
        assert tracemalloc.get_traced_memory()[0] < buffer.held + 10_000
        assert buffer.held <= 2 * buffer.size
    finally:
        tracemalloc.stop()


def test_what_is_cleared_is_gone() -> None:
    buffer = FrameBuffer(longest=100)
    buffer.add(frame(b"abc")[:5])
    buffer.clear()
    assert buffer.size == 0
    buffer.add(frame(b"de"))
    assert buffer.next() == b"de"
