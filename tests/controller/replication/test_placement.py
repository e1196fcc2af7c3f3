"""The placement of replicas: the same as in Kafka's StripedReplicaPlacer with the same random numbers."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication.placement import UsableBroker, place_replicas
from kraftlake.protocol.error_code import ErrorCode
from tests.interop.kafka_controllers import ask_kafka

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """java.util.Random, as its documentation defines it."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ _MULTIPLIER) & _MASK

    def _next_31_bits(self) -> int:
        self._seed = (self._seed * _MULTIPLIER + 0xB) & _MASK
        return self._seed >> 17

    def next_int(self, bound: int) -> int:
        if bound & -bound == bound:
            return bound * self._next_31_bits() >> 31
        while True:
            bits = self._next_31_bits()
            if bits - bits % bound + bound - 1 < 1 << 31:
                return bits % bound


racks = st.sampled_from((None, "a", "b", "c"))
broker_lists = st.lists(
    st.builds(UsableBroker, st.integers(0, 30), racks, st.sampled_from((False, False, True))),
    min_size=1,
    max_size=9,
    unique_by=lambda broker: broker.id,
)


@pytest.mark.spark
@given(broker_lists, st.integers(1, 30), st.integers(1, 5), st.integers(-(1 << 63), (1 << 63) - 1))
def test_kafka_places_them_alike(brokers: list[UsableBroker], partitions: int, factor: int, seed: int) -> None:
    assume(factor <= len(brokers) and not all(broker.fenced for broker in brokers))
    request: dict[str, Any] = {
        "brokers": [{"id": b.id, "rack": b.rack, "fenced": b.fenced} for b in brokers],
        "partitions": partitions,
        "replicationFactor": factor,
        "seed": seed,
    }
    ours = place_replicas(brokers, partitions=partitions, replication_factor=factor, next_int=JavaRandom(seed).next_int)
    assert [list(replicas) for replicas in ours] == ask_kafka("place", request)


@given(broker_lists, st.integers(1, 30), st.integers(1, 5), st.integers())
def test_every_partition_is_led_by_an_unfenced_broker_and_spread_over_racks(
    brokers: list[UsableBroker], partitions: int, factor: int, seed: int
) -> None:
    assume(factor <= len(brokers) and not all(broker.fenced for broker in brokers))
    known = {broker.id: broker for broker in brokers}
    draws = random.Random(seed)
    for replicas in place_replicas(brokers, partitions=partitions, replication_factor=factor, next_int=draws.randrange):
        assert len(set(replicas)) == factor
        assert not known[replicas[0]].fenced
        on_rack = Counter(known[replica].rack for replica in replicas)
        sizes = Counter(broker.rack for broker in brokers)
        for rack, count in on_rack.items():
            roomier = [other for other in sizes if on_rack[other] < sizes[other]]
            assert all(count <= on_rack[other] + 1 for other in roomier), (rack, replicas)


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        ([], 1),
        ([UsableBroker(1, None, True)], 1),
        ([UsableBroker(1, None, False)], 2),
        ([UsableBroker(1, None, False)], 0),
    ],
)
def test_more_replicas_than_brokers_or_no_unfenced_broker_is_refused(brokers: list[UsableBroker], factor: int) -> None:
    with pytest.raises(ControllerApiError) as refused:
        place_replicas(brokers, partitions=1, replication_factor=factor, next_int=lambda _: 0)
    assert refused.value.error is ErrorCode.INVALID_REPLICATION_FACTOR
