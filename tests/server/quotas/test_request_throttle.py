"""What a request's answer says of quotas, and for how long its connection is muted."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from kio.static.primitive import i32Timedelta

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.runtime.clock import ManualClock
from kraftlake.server.node_config import NodeSettings
from kraftlake.server.quotas.quota_managers import QuotaManagers
from kraftlake.server.quotas.request_throttle import RequestThrottle
from tests.publisher.updates import cluster

APIS = import_module("kio.schema.delete_topics.v6.response")


class Node:
    """Quotas of the client id `app`, and the times for which its connection was muted."""

    def __init__(self, **quotas: float) -> None:
        self.clock = ManualClock(1_000)
        self.managers = QuotaManagers(NodeSettings().value, self.clock)
        entity = (r.EntityData(entity_type="client-id", entity_name="app"),)
        cluster(parts=(self.managers.quotas,)).change(
            *(r.ClientQuotaRecord(entity=entity, key=key, value=value, remove=False) for key, value in quotas.items())
        )
        self.muted: list[int] = []

    def request(self, *, forwarded: bool = False) -> RequestThrottle:
        mute = None if forwarded else self.muted.append
        return RequestThrottle(self.managers, principal="User:a", client_id="app", mute=mute)


def answer(throttle_ms: int = 0) -> Any:
    time = i32Timedelta.parse(timedelta(milliseconds=throttle_ms))
    return APIS.DeleteTopicsResponse(throttle_time=time, responses=())


def said(response: Any) -> int:
    return int(response.throttle_time // timedelta(milliseconds=1))


def test_a_client_within_its_quotas_is_answered_as_ever() -> None:
    node = Node(producer_byte_rate=1_000, request_percentage=50)
    request, response = node.request(), answer()
    request.produced(10_000)
    assert request.throttled(response) is response
    assert node.muted == []


def test_the_longest_of_the_throttle_times_counts() -> None:
    node = Node(producer_byte_rate=1_000, request_percentage=1)
    request = node.request()
    node.clock.advance(100)  # 10 % of a second, and 1 % of the ten seconds of the windows
    request.produced(10_500)
    assert said(request.throttled(answer())) == 500
    slow = node.request()
    node.clock.advance(1_000)
    slow.leave_thread()
    node.clock.advance(1_000)
    assert said(slow.throttled(answer())) == 1_000, "of the thread's time alone, and no longer than a window"
    assert node.muted == [500, 1_000]
    times = node.managers.request.throttle_times(node.managers.now_ms)
    assert times == {("", "app"): 1_000}


def test_the_time_of_another_nodes_answer_mutes_the_client_as_well() -> None:
    node = Node(request_percentage=1)
    assert said(node.request().throttled(answer(700))) == 700
    slow = node.request()
    node.clock.advance(1_000)
    assert said(slow.throttled(answer(700))) == 1_000
    assert node.muted == [700, 1_000]


def test_a_forwarded_request_mutes_nobody_where_it_is_answered() -> None:
    node = Node(controller_mutation_rate=1)
    request = node.request(forwarded=True)
    request.mutations(strict=False).record(12)
    node.clock.advance(300)
    assert said(request.throttled(answer())) == 700, "what is left of the second"
    assert node.muted == []


def test_a_strict_quota_refuses_only_who_has_nothing_left() -> None:
    node = Node(controller_mutation_rate=1)
    quota = node.request().mutations(strict=True)
    quota.record(12)
    with pytest.raises(ControllerApiError, match="throttling quota") as refused:
        quota.record(1)
    assert refused.value.error == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    node.clock.advance(1_000)
    quota.record(50)
    assert node.managers.mutation.tokens(node.managers.now_ms) == {("", "app"): -50.0}


def test_a_withheld_fetch_is_not_counted_and_says_how_long_it_was_too_early() -> None:
    node = Node(consumer_byte_rate=1_000)
    assert node.request().most_fetched() == 10_000
    assert not node.request().withholds(9_000)
    early = node.request()
    assert early.withholds(2_000)
    assert said(early.throttled(answer())) == 1_000
    assert node.muted == [1_000]
    node.clock.advance(11_000)
    assert not node.request().withholds(2_000)
    assert node.managers.fetch.rates(node.managers.now_ms) == {("", "app"): 200.0}


def test_no_request_quota_applies_to_an_exempt_request() -> None:
    node = Node(request_percentage=1)
    request = node.request()
    request.is_exempt = True
    node.clock.advance(5_000)
    assert said(request.throttled(answer())) == 0
    assert node.managers.exempt_percentage(node.managers.now_ms) == 50.0
