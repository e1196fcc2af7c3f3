"""What simulated clients take for a broken promise of the cluster."""

from __future__ import annotations

import pytest

from kraftlake.records.uuid import Uuid
from simulator.data_batches import batch
from simulator.invariants import InvariantError
from simulator.mirrors import Committed
from simulator.replica_watch import ReplicaWatch
from simulator.workload import History, Producer

pytestmark = pytest.mark.usefixtures("time")
_TOPIC_ID = Uuid(bytes(15) + b"1")


def test_an_offset_is_acknowledged_of_one_batch_only() -> None:
    watch, one, other = ReplicaWatch(), batch(b"one"), batch(b"other")
    watch.committed[_TOPIC_ID, 0] = Committed()
    watch.committed[_TOPIC_ID, 0].batches.add(0, 1, 0)
    producer = Producer(1, [("one", 0)], History(), watch, [])
    for _ in range(2):
        producer._acknowledged("one", 0, _TOPIC_ID, offset=0, size=1, data=one)
    with pytest.raises(InvariantError, match="acknowledged offset 0 of two batches"):
        producer._acknowledged("one", 0, _TOPIC_ID, offset=0, size=1, data=other)
