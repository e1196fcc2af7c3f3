"""The use of clients that share a quota, and what is shown of it."""

from __future__ import annotations

import tracemalloc

from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.records import metadata_records as r
from kraftlake.runtime.rates import Windows
from kraftlake.server.quotas.client_quota_manager import ClientQuotaManager
from tests.publisher.updates import Cluster, cluster

KEY = "producer_byte_rate"


def quota(value: float, **entity: str | None) -> r.ClientQuotaRecord:
    data = tuple(r.EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items())
    return r.ClientQuotaRecord(entity=data, key=KEY, value=value, remove=False)


def manager() -> tuple[ClientQuotaManager, Cluster]:
    quotas = ClientQuotas()
    return ClientQuotaManager(KEY, quotas, Windows()), cluster(parts=(quotas,))


def test_the_clients_of_a_user_share_its_quota_and_those_of_a_default_have_one_each() -> None:
    made, log = manager()
    assert made.record("alice", "a", 10**9, 0) == 0
    log.change(quota(1_000, user="alice"))
    assert [made.record("alice", client, 6_000, 0) for client in "ab"] == [0, 2_000]
    log.change(quota(1_000, user="bob", client_id=None))
    assert [made.record("bob", client, 6_000, 0) for client in "aba"] == [0, 0, 2_000]
    assert made.rates(0) == {("alice", ""): 1_200.0, ("bob", "a"): 1_200.0, ("bob", "b"): 600.0}


def test_a_changed_quota_holds_for_what_was_used_before() -> None:
    made, log = manager()
    log.change(quota(10_000, client_id="app"))
    assert made.record("", "app", 50_000, 0) == 0
    log.change(quota(1_000, client_id="app"))
    assert made.record("", "app", 0, 0) == 40_000
    assert made.most_at_once("", "app") == 10_000


def test_a_throttle_time_is_no_longer_than_an_answer_has_room_for() -> None:
    made, log = manager()
    log.change(quota(1, client_id="app"))
    assert made.record("", "app", 1e9, 0) == 2**31 - 1


def test_names_of_any_length_are_measured_each_and_take_little_memory() -> None:
    made, log = manager()
    log.change(quota(1_000, client_id=None))
    names = ["x" * 30_000 + str(number) for number in range(200)]
    tracemalloc.start()
    try:
        assert {made.record("", name + "!", 10_000, 0) for name in names} == {0}
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()
    assert {made.record("", name + "!", 1_000, 0) for name in names} == {1_000}
    assert {len(client_id) for _, client_id in made.rates(0)} == {64}


def test_only_clients_that_are_throttled_have_a_throttle_time() -> None:
    made, log = manager()
    log.change(quota(1_000, client_id=None))
    for client in "ab":
        made.record("", client, 1, 0)
    for throttle_ms in (100, 300):
        made.throttled("", "a", throttle_ms, 0)
    assert made.throttle_times(0) == {("", "a"): 200.0}
    assert made.throttle_times(11_000) == {}
