"""Where our leader differs from Kafka 4.4's, shown on Kafka's own ReplicaManager and Partition."""

from __future__ import annotations

import pytest

from kraftlake.replica_manager.controller_channel import BrokerState, LeaderAndIsr
from kraftlake.replica_manager.leader_side import FetchParams, FetchPartition, append_records_to_leader, fetch_records
from tests.interop.kafka_replicas import kafka_replicas
from tests.replica_manager.brokers import Broker, change, partition, started, topic
from tests.replica_manager.data_batches import batch

pytestmark = pytest.mark.spark


def fetched(me: Broker, id_: int) -> None:
    """A follower asks for what comes after all that the leader has."""
    led = me.partition()
    wanted = FetchPartition(fetch_offset=led.local_log.log_end_offset)
    fetch_records(led, FetchParams(replica_id=id_, replica_epoch=100 + id_), wanted)


def accepted(me: Broker, number: int) -> None:
    """The controller makes the proposal so."""
    _, asked, on_answer = me.controller.proposals[number]
    on_answer(
        LeaderAndIsr(
            leader=asked.leader,
            leader_epoch=asked.leader_epoch,
            isr=tuple(BrokerState(*state) for state in asked.isr),
            partition_epoch=asked.partition_epoch + 1,
        )
    )


def ours(*, early: bool) -> dict[str, object]:
    """What `KafkaReplicas.java` does with `isr`, step for step."""
    me = started(topic(), partition(leader=1, isr=(1,)))
    append_records_to_leader(me.partition(), batch(b"x"))
    fetched(me, 2)
    accepted(me, 0)
    fetched(me, 3)
    if early:
        me.hear(change(isr=(1, 2)))
    accepted(me, 1)
    me.clock.advance(60_000)
    append_records_to_leader(me.partition(), batch(b"x"))
    fetched(me, 2)
    log = me.partition().local_log
    return {
        "proposals": len(me.controller.proposals),
        "isr": sorted(me.partition().in_sync.state.isr),
        "end": log.log_end_offset,
        "highWatermark": log.high_watermark,
    }


def test_metadata_that_a_proposal_was_made_on_costs_kafkas_leader_a_replica_of_the_isr_and_not_ours(tmp_path):
    # Follower 3 is in the ISR as the controller has it, and lacks the second record: that is not committed.
    waits = {"proposals": 2, "isr": [1, 2, 3], "end": 2, "highWatermark": 1}
    jvm = kafka_replicas()
    try:
        assert jvm.ask("isr", tmp_path / "late", "false") == waits
        assert jvm.ask("isr", tmp_path / "early", "true") == waits | {"isr": [1, 2], "highWatermark": 2}
    finally:
        jvm.close()
    assert ours(early=False) == waits
    assert ours(early=True) == waits
