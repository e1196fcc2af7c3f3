"""The decoding of answers to Fetch that kio encodes from Kafka's schema, whole and broken."""

from __future__ import annotations

import random
import struct
import uuid
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, ProducerId
from kio.static.primitive import i32, i32Timedelta, i64

from kraftlake.protocol.address import Address
from kraftlake.protocol.fetch_request import FETCH_VERSIONS
from kraftlake.protocol.fetch_response import FetchResponseData, PartitionData, decode_fetch
from kraftlake.records.uuid import Uuid
from kraftlake.records.varint import MalformedError, uvarint
from tests.memory import peak_memory
from tests.protocol.fake_nodes import encoded
from tests.protocol.test_fetch_request import IDS, INT32, INT64, NAMES

UNREADABLE = (MalformedError, IndexError, struct.error, UnicodeDecodeError)
ERRORS = st.sampled_from(list(ErrorCode))
NATURAL32, NATURAL64 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
PARTITIONS = st.builds(
    PartitionData, topic_id=IDS.map(Uuid), index=INT32, error=ERRORS.map(int), high_watermark=INT64,
    log_start_offset=INT64, diverging=st.none() | st.tuples(NATURAL32, NATURAL64), leader=st.tuples(INT32, INT32),
    snapshot=st.none() | st.tuples(NATURAL64, NATURAL32), records=st.binary(max_size=300),
)  # fmt: skip
ENDPOINTS = st.dictionaries(NATURAL32, st.builds(Address, NAMES, NATURAL32), max_size=3)
RESPONSES = st.builds(
    FetchResponseData, error=ERRORS.map(int), session_id=INT32, partitions=st.lists(PARTITIONS, max_size=4).map(tuple),
    endpoints=ENDPOINTS,
)  # fmt: skip


def by_kio(version: int, response: FetchResponseData, *, aborted: int = 0, rack: str | None = None) -> bytes:
    """The bytes of a response, each partition as a topic of its own."""
    m = import_module(f"kio.schema.fetch.v{version}.response")
    transaction = m.AbortedTransaction(producer_id=ProducerId(4), first_offset=i64(9))

    def partition(one: PartitionData) -> Any:
        options: dict[str, Any] = {}
        if one.diverging is not None:
            epoch, offset = one.diverging
            options["diverging_epoch"] = m.EpochEndOffset(epoch=i32(epoch), end_offset=i64(offset))
        if one.snapshot is not None:
            offset, epoch = one.snapshot
            options["snapshot_id"] = m.SnapshotId(end_offset=i64(offset), epoch=i32(epoch))
        leader_id, epoch = one.leader
        return m.PartitionData(
            partition_index=i32(one.index), error_code=ErrorCode(one.error), high_watermark=i64(one.high_watermark),
            last_stable_offset=i64(-1), log_start_offset=i64(one.log_start_offset),
            aborted_transactions=(transaction,) * aborted or None, records=one.records or None,
            current_leader=m.LeaderIdAndEpoch(leader_id=BrokerId(leader_id), leader_epoch=i32(epoch)), **options,
        )  # fmt: skip

    topics = tuple(
        m.FetchableTopicResponse(topic_id=uuid.UUID(bytes=bytes(one.topic_id)), partitions=(partition(one),))
        for one in response.partitions
    )
    endpoints = tuple(
        m.NodeEndpoint(node_id=BrokerId(id_), host=where.host, port=i32(where.port), rack=rack)
        for id_, where in (response.endpoints.items() if version >= 16 else ())
    )
    return encoded(
        m.FetchResponse(
            throttle_time=i32Timedelta.parse(timedelta(0)), error_code=ErrorCode(response.error),
            session_id=i32(response.session_id), responses=topics,
            **({"node_endpoints": endpoints} if version >= 16 else {}),
        )
    )  # fmt: skip


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(response=RESPONSES, aborted=st.integers(0, 3), rack=st.none() | NAMES)
def test_every_answer_that_kio_encodes_is_decoded(
    version: int, response: FetchResponseData, aborted: int, rack: str | None
) -> None:
    data = by_kio(version, response, aborted=aborted, rack=rack)
    decoded = decode_fetch(b"head" + data, 4)
    assert (decoded.error, decoded.session_id) == (response.error, response.session_id)
    assert decoded.partitions == response.partitions
    assert decoded.endpoints == (response.endpoints if version >= 16 else {})


@given(response=RESPONSES, aborted=st.integers(0, 2), seed=st.integers(0, 2**32))
def test_a_cut_off_or_lengthened_answer_is_refused_and_a_changed_one_never_holds_more_than_came(
    response: FetchResponseData, aborted: int, seed: int
) -> None:
    chance = random.Random(seed)
    data = by_kio(17, response, aborted=aborted)
    with pytest.raises(UNREADABLE):
        decode_fetch(data[: chance.randrange(len(data))], 0)
    with pytest.raises(UNREADABLE):
        decode_fetch(data + b"\0", 0)
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    try:
        decoded = decode_fetch(bytes(changed), 0)
    except UNREADABLE:
        return
    assert sum(len(one.records) for one in decoded.partitions) <= len(data)


@given(data=st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with suppress(UNREADABLE):
        decode_fetch(data, 0)


def test_unknown_tagged_fields_and_error_codes_are_passed_over() -> None:
    one = PartitionData(topic_id=Uuid(b"t" * 16), index=3, error=9, high_watermark=5, log_start_offset=2)
    data = by_kio(13, FetchResponseData(error=0, session_id=8, partitions=(one,)))
    assert data.endswith(b"\0\0\0"), "no tagged fields of the partition, the topic and the answer"
    newer = data[:-3] + b"\x01\x09\x02xy" + b"\x01\x07\x00" + b"\x01\x05\x01z"
    assert decode_fetch(newer, 0).partitions == (one,)
    code = newer.replace(struct.pack(">ih", 3, 9), struct.pack(">ih", 3, 9999))
    assert decode_fetch(code, 0).partitions[0].error == 9999


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80"])
def test_a_length_that_the_frame_cannot_hold_is_refused_without_memory_for_it(length: bytes) -> None:
    head = struct.pack(">ihi", 0, 0, 0)
    for data in (head + length, head + b"\x02" + b"t" * 16 + length, head + b"\x01" + length):
        with pytest.raises(UNREADABLE):
            decode_fetch(data, 0)


@pytest.mark.parametrize("tags", [10_001, 2 * 1024 * 1024])
def test_megabytes_of_tagged_fields_are_refused_at_no_cost(tags: int) -> None:
    data = by_kio(17, FetchResponseData(error=0, session_id=8, partitions=()))
    hostile = data[:-1] + uvarint(tags) + b"\x63\x00" * tags

    def refused() -> None:
        with pytest.raises(MalformedError, match=f"it has {tags} tagged fields, and 10000 is the most"):
            decode_fetch(hostile, 0)

    assert peak_memory(refused) < 100_000
