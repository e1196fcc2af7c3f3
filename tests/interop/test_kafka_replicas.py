"""Where our leader differs from Kafka 4.4's, shown on Kafka's own ReplicaManager and Partition."""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import closing
from typing import Any

import attrs
import pytest

from kraftlake.replica_manager.controller_channel import BrokerState, LeaderAndIsr
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.log_values import AppendOrigin
from kraftlake.replica_manager.logs.producer_state import ProducerStates
from kraftlake.replica_manager.partition.leader import (
    FetchParams,
    FetchPartition,
    append_records_to_leader,
    delete_records_on_leader,
    fetch_records,
    offset_for_timestamp,
    update_follower_fetch_state,
)
from kraftlake.replica_manager.partition.replica import FollowerFetch
from kraftlake.replica_manager.requests import delayed_fetch, log_reads
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.runtime.log import without_logs
from simulator.data_batches import batch, marker
from tests.interop.kafka_replicas import kafka_replicas
from tests.replica_manager.brokers import Broker, broker, change, partition, started, topic, tp

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


def script(seed: int, steps: int) -> list[list[object]]:
    """What a leader is asked, one thing after the other: mostly what its producers may do, and some of what not."""
    chance = random.Random(seed)
    due: dict[int, list[int]] = {7: [0, 0], 8: [0, 0], 9: [0, 0]}
    made: list[list[object]] = []
    for _ in range(steps):
        what = chance.choices(
            ("append", "end", "fetched", "elect", "expire", "policy", "delete", "offset", "fetch"),
            (30, 5, 8, 2, 1, 2, 3, 8, 12),
        )[0]
        producer = chance.choice(list(due))
        epoch, sequence = due[producer]
        if what == "append":
            epoch = max(0, epoch + chance.choice((0,) * 8 + (1, -1)))
            first = chance.choice(
                (sequence, sequence, sequence, sequence + 1, max(0, sequence - chance.randrange(8)), 0)
            )
            count = chance.choice((1, 1, 2))
            made.append([what, producer, epoch, first, count, producer == 9 and chance.random() < 0.7])
            if first == sequence or epoch > due[producer][0]:
                due[producer] = [epoch, first + count]
        elif what == "end":
            made.append([what, 9, due[9][0], chance.choice((0, 1, 1, 2))])
        elif what == "fetched":
            made.append([what, chance.choice((2, 2, 3)), chance.random() < 0.6])
        elif what == "policy":
            made.append([what, chance.choice(("delete", "compact", "compact,delete", ""))])
        elif what == "delete":
            made.append([what, chance.choice((-1, 0, 1, chance.randrange(20), 500))])
        elif what == "offset":
            # Kafka's search for the largest time finds records below the log's start, which are gone here
            largest = () if any(step[0] == "delete" for step in made) else (-3,)
            made.append([what, chance.choice((-1, -2, *largest, -4, -5, -6, 0, 1000, 1001))])
        elif what == "fetch":
            rack, known = chance.choice((None, "r1", "r2", "r3", "r3", "r4")), chance.choice((None, None, 0, 1, 2))
            made.append([what, chance.randrange(40), rack, known])
        else:
            made.append([what])
    return made


class Asked:
    """Our leader, asked what `KafkaReplicas.java` asks Kafka's with `serve`."""

    def __init__(self) -> None:
        racked = [attrs.evolve(broker(id_), rack=f"r{id_}") for id_ in (1, 2, 3)]
        self.me = started(
            topic(), partition(leader=1, isr=(1, 2)), *racked,
            delayed=DelayedRequests,
        )  # fmt: skip
        self.server = RequestServer(self.me.manager, self.me.delayed)

    def step(self, what: str, *arguments: Any) -> object:
        try:
            return getattr(self, what)(*arguments)
        except ReplicationError as error:
            return {"error": int(error.code)}

    def append(self, producer: int, epoch: int, first: int, count: int, transactional: bool) -> list[int]:
        values, key = [b"x"] * count, b"k"  # a compacted log takes no record without a key
        data = batch(*values, producer=producer, epoch=epoch, sequence=first, transactional=transactional, key=key)
        info = append_records_to_leader(self.me.partition(), data, required_acks=1)
        return [info.first_offset, info.last_offset]

    def end(self, producer: int, epoch: int, coordinator_epoch: int) -> list[int]:
        data = marker(producer, commit=True, epoch=epoch, coordinator_epoch=coordinator_epoch)
        info = append_records_to_leader(self.me.partition(), data, origin=AppendOrigin.COORDINATOR, required_acks=1)
        return [info.first_offset, info.last_offset]

    def fetched(self, id_: int, caught_up: bool) -> int:
        led = self.me.partition()
        end = led.local_log.log_end_offset
        at = end if caught_up else led.local_log.high_watermark
        fetch = FollowerFetch(
            fetch_offset=at, log_start_offset=0, broker_epoch=100 + id_, time_ms=self.me.clock.milliseconds(),
            leader_end_offset=end,
        )  # fmt: skip
        update_follower_fetch_state(led, led.replica(id_), fetch)
        return led.local_log.high_watermark

    def elect(self) -> None:
        self.me.hear(change(leader=1))

    def expire(self) -> None:
        self.me.partition().local_log.remove_expired_producers(1_000 + 86_400_000, 86_400_000)

    def policy(self, value: str) -> None:
        log = self.me.partition().local_log
        log.update_config(log.config.overridden({"cleanup.policy": value}))

    def delete(self, offset: int) -> int:
        delete_records_on_leader(self.me.partition(), offset)
        return self.me.partition().local_log.log_start_offset

    def offset(self, timestamp: int) -> int:
        found = offset_for_timestamp(self.me.partition(), timestamp)
        return -1 if found is None else found.offset

    def fetch(self, offset: int, rack: str | None, epoch: int | None) -> object:
        got: list[Any] = []
        wanted = FetchPartition(fetch_offset=offset, current_leader_epoch=epoch)
        self.server.fetch_messages(FetchParams(rack=rack, max_wait_ms=60_000), {tp(): wanted}, on_answer=got.append)
        if not got:
            return "waits"
        (answer,) = got[0].values()
        if answer.read is None:
            return {"error": int(answer.error)}
        return {
            "near": answer.preferred_read_replica,
            "highWatermark": answer.read.high_watermark,
            "empty": answer.size_in_bytes == 0,
        }


SCRIPTS, STEPS = (20, 400) if os.environ.get("KRAFTLAKE_TESTS") == "long" else (5, 200)


@pytest.fixture(scope="module")
def jvm():
    with closing(kafka_replicas()) as made:
        yield made


def first_difference(scripts: list[list[list[Any]]], theirs: list[list[object]]) -> str:
    """The first step of any script that is answered otherwise here, empty where none is."""
    for steps, answers in zip(scripts, theirs, strict=True):
        asked = Asked()
        for place, (step, answer) in enumerate(zip(steps, answers, strict=True)):
            ours = asked.step(*step)
            if ours != answer:
                return f"step {place}, {step}: {ours}, in Kafka {answer}; before: {steps[max(0, place - 8) : place]}"
    return ""


def not_checked(found: Any) -> Any:
    return lambda *_, **__: found


def of_any_replica(partition: Any, params: FetchParams, fetch: FetchPartition) -> int | None:
    """The follower in the consumer's rack, whether it is in sync or not."""
    metadata = partition.context.metadata
    for id_, replica in partition.in_sync.remote_replicas.items():
        if params.rack == metadata.rack_of(id_) and replica.state.log_end_offset >= fetch.fetch_offset:
            return id_
    return None


def none_is_none(partition: Any, timestamp: int) -> Any:
    """ListOffsets that takes no found record for the answer, wherever the high watermark is."""
    found = partition.local_log.offset_for_timestamp(timestamp)
    return None if found is None else _offset_for_timestamp(partition, timestamp)


_offset_for_timestamp = offset_for_timestamp


PLANTED = {
    "producers are not known": (ProducerStates, "check", not_checked(([], None))),
    "consumers go to any replica": (log_reads, "preferred_read_replica", of_any_replica),
    "a fetch past the high watermark waits": (delayed_fetch, "is_past_end", not_checked(False)),
    "no record is no error": (sys.modules[__name__], "offset_for_timestamp", none_is_none),
    "only the policy delete deletes": (
        LogConfig,
        "is_compacted_only",
        property(lambda self: "delete" not in self.cleanup_policy),
    ),
}


def test_a_leader_answers_producers_and_consumers_as_kafkas_does_and_not_with_a_fault_planted(
    jvm, tmp_path, monkeypatch
):
    scripts = [script(seed, STEPS) for seed in range(SCRIPTS)]
    theirs = [
        jvm.ask("serve", tmp_path / str(place), json.dumps(steps))["answers"] for place, steps in enumerate(scripts)
    ]
    with without_logs():
        assert first_difference(scripts, theirs) == ""
        for fault, (where, name, planted) in PLANTED.items():
            with monkeypatch.context() as patched:
                patched.setattr(where, name, planted)
                assert first_difference(scripts, theirs), fault


def test_metadata_that_a_proposal_was_made_on_costs_kafkas_leader_a_replica_of_the_isr_and_not_ours(jvm, tmp_path):
    # Follower 3 is in the ISR as the controller has it, and lacks the second record: that is not committed.
    waits = {"proposals": 2, "isr": [1, 2, 3], "end": 2, "highWatermark": 1}
    assert jvm.ask("isr", tmp_path / "late", "false") == waits
    assert jvm.ask("isr", tmp_path / "early", "true") == waits | {"isr": [1, 2], "highWatermark": 2}
    assert ours(early=False) == waits
    assert ours(early=True) == waits
