"""Client quotas of a lake's cluster, as real clients feel them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kraftlake.controller.access.client_quotas import QuotaAlteration, alter_client_quotas
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.client_quotas import CONNECTION_RATE_KEY, ClientQuotas
from tests.server.broker.lake_cluster import PATIENCE, LakeCluster
from tests.server.broker.test_heeded_settings import asked, milliseconds
from tests.server.broker.throttled_clients import Use, after, consume, fill, produce

RATE = 200_000
IS_LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
WINDOWS = {"quota.window.num": "3", "controller.quota.window.num": "2"}
SETTLED_AFTER, MEASURED = (3.0, 20.0) if IS_LONG else (2.0, 1.5)
"""Seconds: first all windows but one, of a second each, may be filled at once, then the rate is the quota's."""
LOWEST, HIGHEST = (0.9 * RATE, 1.1 * RATE) if IS_LONG else (0.5 * RATE, 1.5 * RATE)
"""Beside other work a client may be late to get what it may have, and after a pause it may get twice that."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeCluster]:
    made = LakeCluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start_controller(101, **WINDOWS)
        made.start_broker(1, WINDOWS)
        made.await_unfenced(1)
        made.wait_for(lambda: made.members[1].server.dispatcher)
        made.make_topic("t", 3)
        yield made
    finally:
        made.stop()


def alter(cluster: LakeCluster, entity: dict[str, str | None], **quotas: float | None) -> None:
    """Change quotas in the log, and wait until the nodes have replayed the change."""
    change = QuotaAlteration(entity=tuple(entity.items()), ops=tuple(quotas.items()))
    controller = cluster.members[101].server
    controller.node.controller.submit(lambda state: alter_client_quotas(state, [change])).result(PATIENCE)
    cluster.wait_for(lambda: all(is_in_effect(cluster.members[node].server, entity, quotas) for node in (1, 101)))


def is_in_effect(server: Any, entity: dict[str, str | None], quotas: dict[str, float | None]) -> bool:
    """Whether a node has these quotas for a client or an address, or for anyone where the entity is a default."""
    found: ClientQuotas = server.quotas.quotas
    if "ip" in entity:
        return found.connection_rate(entity["ip"] or "any") == quotas[CONNECTION_RATE_KEY]
    user, client_id = entity.get("user", "") or "any", entity.get("client-id", "") or "any"
    return all(found.limit(key, user=user, client_id=client_id) == value for key, value in quotas.items())


def has_settled(use: Use) -> bool:
    """Whether a client has had its quota at last, or has had time enough for that."""
    seconds = use.seconds
    if seconds < SETTLED_AFTER + MEASURED:
        return False
    return LOWEST <= use.rate(seconds - MEASURED, seconds) <= HIGHEST or seconds > PATIENCE


def test_a_producer_settles_at_its_quota_and_others_are_not_held(cluster: LakeCluster) -> None:
    alter(cluster, {"client-id": "held"}, producer_byte_rate=RATE)
    held = produce(cluster.brokers, "held", "t", 0, done=has_settled)
    assert held.seconds < PATIENCE, held
    assert max(held.throttles) > 0
    free = produce(cluster.brokers, "free", "t", 2, done=after(0.5))
    assert free.throttles == []


def test_a_consumer_settles_at_its_quota(cluster: LakeCluster) -> None:
    fill(cluster.brokers, "t", 1, round(3 * RATE * (SETTLED_AFTER + MEASURED)))
    alter(cluster, {"user": "ANONYMOUS", "client-id": "reader"}, consumer_byte_rate=RATE)
    reader = consume(cluster.brokers, "reader", "t", 1, done=has_settled)
    assert reader.seconds < PATIENCE, reader
    assert max(reader.throttles) > 0


def test_a_client_above_its_share_of_a_thread_is_throttled(cluster: LakeCluster) -> None:
    alter(cluster, {"client-id": "busy"}, request_percentage=0.01)
    use = Use()
    client = Producer({"bootstrap.servers": cluster.brokers, "client.id": "busy", "throttle_cb": use.count})
    for _ in range(2):
        client.list_topics(timeout=PATIENCE)
        client.poll(0)
    assert use.throttles
    assert max(use.throttles) <= 1_000, "no longer than a window"
    alter(cluster, {"client-id": "busy"}, request_percentage=None)
    use.throttles.clear()
    client.list_topics(timeout=PATIENCE)
    client.list_topics(timeout=PATIENCE)
    client.poll(0)
    assert not any(use.throttles), "librdkafka reports the end of it as 0"


def changed(cluster: LakeCluster, api: str, version: int, **fields: Any) -> Any:
    """The answer of a broker to a request that it forwards, which waits for no broker."""
    return asked(cluster, api, version, timeout=milliseconds(60_000), **fields)


def created(cluster: LakeCluster, version: int, *partitions: int) -> tuple[list[ErrorCode], int]:
    """The errors of new topics with so many partitions, and the throttle time in ms."""
    module = import_module(f"kio.schema.create_topics.v{version}.request")
    topics = tuple(
        module.CreatableTopic(
            name=f"{version}-{number}", num_partitions=number, replication_factor=1, assignments=(), configs=()
        )
        for number in partitions
    )
    answer = changed(cluster, "create_topics", version, topics=topics, validate_only=False)
    return [ErrorCode(one.error_code) for one in answer.topics], answer.throttle_time // milliseconds(1)


def test_who_has_no_partitions_left_is_refused_or_only_throttled_by_older_versions(cluster: LakeCluster) -> None:
    alter(cluster, {"user": None}, controller_mutation_rate=0.5)  # a token at most
    errors, throttle_ms = created(cluster, 7, 9, 3, 1)
    assert errors == [ErrorCode.NONE, *[ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 2]
    assert 0 < throttle_ms <= 16_000, "eight tokens are missing"
    module = import_module("kio.schema.delete_topics.v6.request")
    topic = module.DeleteTopicState(name="7-9", topic_id=None)
    answer = changed(cluster, "delete_topics", 6, topics=(topic,))
    assert [one.error_code for one in answer.responses] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    module = import_module("kio.schema.create_partitions.v3.request")
    more = module.CreatePartitionsTopic(name="7-9", count=11, assignments=None)
    answer = changed(cluster, "create_partitions", 3, topics=(more,), validate_only=False)
    assert [one.error_code for one in answer.results] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    errors, throttle_ms = created(cluster, 5, 9, 8)
    assert errors == [ErrorCode.NONE] * 2
    assert 16_000 < throttle_ms <= 50_000, "at most twenty-five are missing"
    use = Use()
    admin = AdminClient({"bootstrap.servers": cluster.brokers, "throttle_cb": use.count})
    admin.delete_topics(["7-9"])["7-9"].result(PATIENCE)
    admin.poll(1)
    assert max(use.throttles) > 0
    alter(cluster, {"user": None}, controller_mutation_rate=None)
    assert created(cluster, 7, 4, 1) == ([ErrorCode.NONE] * 2, 0)


def test_an_address_that_connects_too_often_is_not_served(cluster: LakeCluster) -> None:
    alter(cluster, {"ip": "127.0.0.2"}, connection_creation_rate=1)
    port = cluster.members[1].server.listeners[0].port

    def connect(address: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(address, 0))

    def is_closed(client: socket.socket, within: float) -> bool:
        client.settimeout(within)
        try:
            return client.recv(1) == b""
        except TimeoutError:
            return False

    clients = [connect("127.0.0.2") for _ in range(3)]
    other = connect("127.0.0.1")
    try:
        assert not is_closed(clients[2], within=0.2), "it is not to come back at once"
        assert is_closed(clients[2], within=PATIENCE)
        assert not any(is_closed(client, within=0.1) for client in (*clients[:2], other))
    finally:
        for client in (*clients, other):
            client.close()
