"""Nodes of a cluster that are killed, paused and started again, under load: what was acknowledged can be read."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

import kraftlake
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replica_manager.logs.log_batch import log_batches
from kraftlake.replica_manager.logs.producer_state import BATCHES_TO_RETAIN
from tests.server.broker.keyed_load import KeyedLoad, check_compacted, read_all
from tests.server.broker.load import Load
from tests.server.broker.muting_proxy import MutingProxy
from tests.server.broker.on_disk import bytes_of
from tests.server.client_history import Readers, RecordedLoad
from tests.server.history_checker import History, violations
from tests.server.lake_processes import LakeProcesses
from tests.server.node_process import KilledNode
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.xdist_group("killed_nodes")

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SEED = int(os.environ.get("KRAFTLAKE_SEED", "0"))
TOPIC, REPEATED, PARTITIONS = "kept", "repeated", 4
COMPACTED, COMPACTED_PARTITIONS, KEYS = "compacted", 2, 51
CLEANER = {"log.initial.task.delay.ms": "1000", "log.cleaner.backoff.ms": "300"}
"""Settings by which brokers clean logs soon after each start, and all the time."""
KILLS, SECONDS = 2, 150 if LONG else 0
"""How often nodes are killed or sleep, one after the other, and how long."""
ROUNDS = 12 if LONG else 1
"""How often a broker is killed whose producer waits for answers."""


KINDS = ["PLAINTEXT", "SASL_SSL"] if LONG else ["PLAINTEXT"]
"""The security protocols of the clusters whose nodes are killed."""


@pytest.fixture(scope="module", params=KINDS)
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[LakeProcesses]:
    secure = request.param == "SASL_SSL"
    with LakeProcesses(tmp_path_factory.mktemp("killed"), settings=CLEANER, secure=secure) as made:
        made.create(TOPIC, PARTITIONS, min_insync_replicas="2")
        made.create(
            COMPACTED, COMPACTED_PARTITIONS, min_insync_replicas="2", cleanup_policy="compact",
            internal_segment_bytes="20000", min_cleanable_dirty_ratio="0.1",
        )  # fmt: skip
        yield made


def held(cluster: LakeProcesses, topic: str, partitions: int) -> dict[tuple[int, int], bytes]:
    """The values of all records by partition and offset."""
    consumer = Consumer({**cluster.client, "group.id": "none", "enable.auto.commit": False})
    places = [Place(topic, number, 0) for number in range(partitions)]
    wanted = sum(consumer.get_watermark_offsets(place, timeout=PATIENCE)[1] for place in places)
    consumer.assign(places)
    found: dict[tuple[int, int], bytes] = {}
    deadline = time.monotonic() + PATIENCE
    while len(found) < wanted and time.monotonic() < deadline:
        for message in consumer.consume(10_000, timeout=1.0):
            if message.error() is None:
                found[message.partition(), message.offset()] = message.value()
    consumer.close()
    assert len(found) == wanted, f"{len(found)} of {wanted} records can be read"
    return found


def leads_anew(cluster: LakeProcesses, before: int) -> bool:
    """Whether a controller has claimed a later epoch and answers."""
    return any(int(one["epoch"]) > before for node in cluster.controllers for one in node.events("active"))


def active_epoch(cluster: LakeProcesses) -> int:
    return max(int(one["epoch"]) for node in cluster.controllers for one in node.events("active"))


def active_controller(cluster: LakeProcesses) -> KilledNode:
    """The controller of the latest epoch."""
    epoch = active_epoch(cluster)
    return next(
        node for node in cluster.controllers if any(int(one["epoch"]) == epoch for one in node.events("active"))
    )


def test_what_was_acknowledged_survives_brokers_and_controllers_that_are_killed(cluster: LakeProcesses) -> None:
    draws = random.Random(SEED)
    names = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    compacted = [TopicPartition(COMPACTED, number) for number in range(COMPACTED_PARTITIONS)]
    kills, history = 0, History()
    readers = Readers(cluster.client, TOPIC, PARTITIONS, history)
    with (
        readers,
        RecordedLoad(cluster.bootstrap, names, history, per_second=200, **cluster.client) as load,
        RecordedLoad(cluster.bootstrap, names, history, per_second=200, **cluster.client),
        KeyedLoad(cluster.bootstrap, compacted, keys=KEYS, per_second=200, batch_size=8_000, **cluster.client) as keyed,
    ):
        load.await_more()
        end = time.monotonic() + SECONDS
        while kills < KILLS or time.monotonic() < end:
            victim = active_controller(cluster) if kills % 2 else draws.choice(cluster.brokers)
            epoch = active_epoch(cluster)
            sleeps = kills % 5 == 4
            victim.signal(signal.SIGSTOP) if sleeps else victim.kill()
            kills += 1
            if victim in cluster.controllers:
                wait_for(lambda epoch=epoch: leads_anew(cluster, epoch), "another controller leads")  # type: ignore[misc]
            load.await_more()
            victim.signal(signal.SIGCONT) if sleeps else victim.start()
            cluster.await_alive()
            wait_for(lambda: all_in_sync(cluster), "all replicas are in sync")
            load.await_more()
            keyed.await_more()
        wait_for(lambda: all(node.events("log_cleaned") for node in cluster.brokers), "all brokers clean logs")
    readers.read_to_the_end()
    assert not violations(history)
    assert len(history.reads) > len(history.appends) >= 200 * kills
    assert history.ends
    left = read_all(cluster.client, COMPACTED, COMPACTED_PARTITIONS)
    check_compacted(keyed.records, left)
    assert len(left) < len(keyed.records), "nothing was compacted"
    assert not [node.id for node in cluster.brokers if node.events("log_is_uncleanable")]


def test_a_producer_whose_five_requests_a_killed_broker_has_not_answered_doubles_nothing(
    cluster: LakeProcesses,
) -> None:
    if cluster.plan.security is not None:
        pytest.skip("the proxy has to read what it passes on")
    cluster.create(REPEATED, replicas=1)
    (partition,) = cluster.image().topics.get_topic(REPEATED).partitions.values()
    broker, name = cluster.nodes[partition.leader], TopicPartition(REPEATED, 0)
    eager = {"linger_ms": 0, "batch_num_messages": 1, "reconnect_backoff_max_ms": 500}
    ports = [node.port for node in cluster.brokers]
    with MutingProxy(ports) as proxy, Load(proxy.addresses, [name], per_second=50, **eager) as load:
        for _ in range(ROUNDS):
            load.await_caught_up()
            proxy.mute(broker.port)
            looks: list[int] = []
            wait_for(lambda: all_wait(broker, load, looks), "five batches are not answered")  # noqa: B023
            broker.kill()
            broker.start()
        load.await_caught_up()
    batches = list(log_batches(bytes_of([broker.folder / "logs"], name)))
    numbers = Counter((one.producer_id, one.producer_epoch, one.base_sequence) for one in batches)
    assert max(numbers.values()) == 1, f"in the log twice: {numbers.most_common(3)}"
    assert len({id_ for id_, _, _ in numbers}) == 1, "the producer has begun anew"
    found = held(cluster, REPEATED, 1)
    assert sorted(load.acked) == sorted((*place, value) for place, value in found.items())
    assert len({*found.values()}) == len(found), "a record is there twice"
    cluster.await_alive()


def all_wait(broker: KilledNode, load: Load, looks: list[int]) -> bool:
    """Whether as many batches as can be in flight are in the log and not answered: in several looks.

    The client reports answers some time after they have come.
    """
    answered = max(offset for _, offset, _ in load.acked)
    batches = log_batches(bytes_of([broker.folder / "logs"], TopicPartition(REPEATED, 0)))
    looks.append(sum(one.base_offset > answered for one in batches))
    return looks[-6:] == [BATCHES_TO_RETAIN] * 6


def all_in_sync(cluster: LakeProcesses) -> bool:
    topics = [cluster.image().topics.get_topic(name) for name in (TOPIC, COMPACTED)]
    return all(
        topic is not None and all(len(one.isr) == len(one.replicas) for one in topic.partitions.values())
        for topic in topics
    )


@pytest.mark.skipif(not LONG, reason="make test-long: controller/test_controller_process.py has a stale one as well")
def test_a_controller_that_slept_while_another_took_over_never_commits_again(cluster: LakeProcesses) -> None:
    stale, epoch = active_controller(cluster), active_epoch(cluster)
    before = len(stale.events("standby"))
    stale.signal(signal.SIGSTOP)
    try:
        wait_for(lambda: leads_anew(cluster, epoch), "the standby takes over")
        cluster.create("after")
    finally:
        stale.signal(signal.SIGCONT)
    wait_for(lambda: stale.events("standby")[before:], "the stale controller knows that it leads no longer")
    cluster.create("later")
    image = cluster.image()
    assert {"after", "later"} <= image.topics.topics_by_name().keys()
    writers = {int(later): int(leader) for later, leader in leaders_by_epoch(cluster) if int(later) > epoch}
    assert writers[min(writers)] != stale.id


def leaders_by_epoch(cluster: LakeProcesses) -> Iterator[tuple[int, int]]:
    """Who has claimed each epoch, and that every record is of the epoch of the last claim before it."""
    claimed: dict[int, int] = {}
    latest = -1
    for batch in kraftlake.open(cluster.lake).batches():
        assert batch.epoch >= latest, f"a batch of epoch {batch.epoch} at {batch.base_offset} after one of {latest}"
        for message in batch.messages() if batch.control else ():
            if isinstance(message.message, LeaderChangeMessage):
                assert batch.epoch not in claimed, "one claim an epoch"
                claimed[batch.epoch] = message.message.leader_id
        assert batch.epoch in claimed, "an epoch begins with its claim"
        latest = batch.epoch
    yield from claimed.items()
