"""Late proposals of an ISR, which leaders have given up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.replica_manager.partition.partition_state import CommittedIsr, PendingExpandIsr
from simulator.invariants import InvariantError, NothingPromisedError
from simulator.late_requests import LateRequests
from simulator.replica_watch import ReplicaWatch
from simulator.scheduler import Scheduler
from tests.controller.both_sides import wire_uuid
from tests.replica_manager.brokers import FOO, tp
from tests.server.controller.wire_requests import alter_partition
from tests.server.requests.test_dispatcher import frame_of

COMMITTED = CommittedIsr(isr=frozenset((1, 2)))
SENT = PendingExpandIsr(last_committed=COMMITTED, sent=None, new_in_sync_replica=3)  # type: ignore[arg-type]
LATE = frame_of(alter_partition(1, 5, wire_uuid(FOO), 0, [(1, 5), (2, 6), (3, 7)]))
"""A proposal of broker 1 for the partition's epoch 0: broker 3 is in sync."""


def image_at(partition_epoch: int, isr: tuple[int, ...]) -> MetadataImage:
    """`foo-0`, led by broker 1."""
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(r.TopicRecord(name="foo", topic_id=FOO))
    delta.replay(
        r.PartitionRecord(
            partition_id=0, topic_id=FOO, replicas=(1, 2, 3), isr=isr, leader=1, leader_epoch=0,
            partition_epoch=partition_epoch,
        )
    )  # fmt: skip
    return delta.apply(MetadataProvenance(offset=1, epoch=1))


class Cluster:
    """A leader's state, the newest image, and what judges them."""

    def __init__(self, time: Scheduler, state: Any) -> None:
        led = SimpleNamespace(topic_id=FOO, is_leader=True, leader_epoch=0, in_sync=SimpleNamespace(state=state))
        node = SimpleNamespace(
            name="broker 1", process=time.outside, is_registered=lambda image: True, partition=lambda name: led
        )
        self.led, self.newest, self.lost = led.in_sync, image_at(0, (1, 2)), []
        time.outside.extra["brokers"] = {1: node}
        self.requests = LateRequests(
            {1: node},  # type: ignore[dict-item]
            newest=lambda: self.newest,
            may_register=lambda broker: False,
            note=self.lost.append,
        )
        self.watch = ReplicaWatch()
        self.watch.is_proposed_late = self.requests.is_proposed_late

    def arrives(self) -> bool:
        return self.requests.arrives(SimpleNamespace(name="broker 1"), LATE)  # type: ignore[arg-type]

    def accept(self, partition_epoch: int = 1) -> None:
        """Accept the proposal, and judge the leader."""
        self.newest = image_at(partition_epoch, (1, 2, 3))
        state = self.newest.topics.get_partition(FOO, 0)
        assert state is not None
        self.watch.check_quorum(tp(0), FOO, state, self.newest)


def test_a_proposal_is_lost_whose_leader_has_gone_on(time: Scheduler) -> None:
    cluster = Cluster(time, COMMITTED)
    assert not cluster.arrives()
    assert cluster.lost == ["a late alter_partition of broker 1 is lost"]
    assert not cluster.requests.is_proposed_late(FOO, 0, 1)


def test_a_proposal_arrives_that_the_controller_refuses(time: Scheduler) -> None:
    cluster = Cluster(time, COMMITTED)
    cluster.newest = image_at(1, (1, 2))
    assert cluster.arrives()
    assert not cluster.requests.is_proposed_late(FOO, 0, 1)


def test_nothing_is_promised_where_a_leader_goes_on_while_its_proposal_waits(time: Scheduler) -> None:
    cluster = Cluster(time, SENT)
    assert cluster.arrives()
    cluster.accept()  # the leader waits for broker 3 as well
    cluster.led.state = COMMITTED
    with pytest.raises(NothingPromisedError, match=r"foo-0: broker 1 waits for \[1, 2\] only, with ISR \(1, 2, 3\)"):
        cluster.accept()
    with pytest.raises(InvariantError):  # it is another proposal's epoch
        cluster.accept(partition_epoch=2)


def test_a_leader_that_misses_a_member_without_a_late_proposal_is_a_failure(time: Scheduler) -> None:
    cluster = Cluster(time, COMMITTED)
    with pytest.raises(InvariantError, match="ReplicationQuorumSuperset"):
        cluster.accept()
