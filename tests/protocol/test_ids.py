"""Ids on their way through kio."""

from __future__ import annotations

import io
import uuid

from hypothesis import given
from hypothesis import strategies as st
from kio.serial import readers, writers

from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.records.uuid import Uuid


@given(st.binary(min_size=16, max_size=16) | st.just(bytes(16)))
def test_an_id_is_the_same_after_it_was_written_and_read(raw: bytes) -> None:
    buffer = io.BytesIO()
    writers.write_uuid(buffer, wire_id(Uuid(raw)))
    assert buffer.getvalue() == raw
    found, _ = readers.read_uuid(raw, 0)
    assert kafka_id(found) == raw


def test_no_id_is_the_id_of_zeros() -> None:
    assert wire_id(None) is None
    assert wire_id(Uuid.ZERO) is None
    assert kafka_id(None) == Uuid.ZERO
    assert kafka_id(uuid.UUID(int=7)) == Uuid(uuid.UUID(int=7).bytes)
