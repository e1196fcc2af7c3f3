"""The bytes of Fetch requests, compared with those that kio makes from Kafka's schema."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i32Timedelta, i64

from kraftlake.protocol.fetch_request import FETCH_VERSIONS, FetchHeader, encode_fetch, encode_partition
from tests.protocol.fake_nodes import encoded

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
# kio has null for the id of 16 zeros
IDS = st.binary(min_size=16, max_size=16).filter(any)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=140)
MILLISECONDS = st.integers(0, 2**31 - 1)
HEADERS = st.builds(
    FetchHeader, cluster_id=st.none() | NAMES, replica_id=INT32, replica_epoch=INT64, max_wait_ms=MILLISECONDS,
    min_bytes=INT32, max_bytes=INT32, isolation_level=st.integers(0, 1), session_id=INT32, session_epoch=INT32,
    rack=NAMES,
) | st.builds(FetchHeader, max_wait_ms=MILLISECONDS, max_bytes=INT32)  # fmt: skip
PARTITIONS = st.fixed_dictionaries(
    {
        "index": INT32, "current_leader_epoch": INT32, "fetch_offset": INT64, "last_fetched_epoch": INT32,
        "log_start_offset": INT64, "max_bytes": INT32, "high_watermark": st.none() | st.integers(-1, 2**63 - 2),
    }
)  # fmt: skip


def by_kio(
    version: int,
    header: FetchHeader,
    topics: Sequence[tuple[bytes, Sequence[dict[str, Any]]]],
    forgotten: Sequence[tuple[bytes, Sequence[int]]],
) -> bytes:
    m = import_module(f"kio.schema.fetch.v{version}.request")

    def partition(index: int, max_bytes: int, high_watermark: int | None, **fields: int) -> Any:
        newer = {} if version < 18 or high_watermark is None else {"high_watermark": i64(high_watermark)}
        return m.FetchPartition(partition=i32(index), partition_max_bytes=i32(max_bytes), **newer, **fields)

    state = attrs.asdict(header)
    replica_id, replica_epoch = state.pop("replica_id"), state.pop("replica_epoch")
    replica = {"replica_id": BrokerId(replica_id)}
    if version >= 15:
        replica = {"replica_state": m.ReplicaState(**replica, replica_epoch=i64(replica_epoch))}
    wait = i32Timedelta.parse(timedelta(milliseconds=state.pop("max_wait_ms")))
    request = m.FetchRequest(
        max_wait=wait, rack_id=state.pop("rack"), isolation_level=i8(state.pop("isolation_level")), **replica, **state,
        topics=tuple(
            m.FetchTopic(topic_id=uuid.UUID(bytes=id_), partitions=tuple(partition(**fields) for fields in partitions))
            for id_, partitions in topics
        ),
        forgotten_topics_data=tuple(
            m.ForgottenTopic(topic_id=uuid.UUID(bytes=id_), partitions=tuple(map(i32, indexes)))
            for id_, indexes in forgotten
        ),
    )  # fmt: skip
    return encoded(request)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(
    header=HEADERS,
    topics=st.lists(st.tuples(IDS, st.lists(PARTITIONS, max_size=3)), max_size=3),
    forgotten=st.lists(st.tuples(IDS, st.lists(INT32, max_size=3)), max_size=3),
)
def test_every_request_has_the_bytes_that_kio_makes(
    version: int,
    header: FetchHeader,
    topics: list[tuple[bytes, list[dict[str, Any]]]],
    forgotten: list[tuple[bytes, list[int]]],
) -> None:
    partitions = [(id_, [encode_partition(version, **fields) for fields in many]) for id_, many in topics]
    assert encode_fetch(version, header, partitions, forgotten) == by_kio(version, header, topics, forgotten)


def test_lists_of_more_than_a_hundred_have_longer_counts() -> None:
    header = FetchHeader(max_wait_ms=500, max_bytes=1000, replica_id=7, replica_epoch=3)
    fields = {
        "index": 5, "current_leader_epoch": 1, "fetch_offset": 2, "last_fetched_epoch": 3, "log_start_offset": 4,
        "max_bytes": 6, "high_watermark": None,
    }  # fmt: skip
    ids = [number.to_bytes(16, "big") for number in range(1, 301)]
    topics = [(ids[0], [fields] * 200), *((id_, [fields]) for id_ in ids)]
    partitions = [(id_, [encode_partition(17, **each) for each in many]) for id_, many in topics]  # type: ignore[arg-type]
    forgotten = [(ids[1], range(400)), *((id_, [1]) for id_ in ids)]
    assert encode_fetch(17, header, partitions, forgotten) == by_kio(17, header, topics, forgotten)
