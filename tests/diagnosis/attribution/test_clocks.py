"""Differences of clocks, from pairs of a request and a record that belong to nothing else."""

from __future__ import annotations

from kraftlake.diagnosis.attribution.causes import cause_of
from kraftlake.diagnosis.attribution.changed_records import ChangedRecord
from kraftlake.diagnosis.attribution.clocks import Clock, estimate
from kraftlake.diagnosis.attribution.requests import Access, Request
from tests.replay.made_logs import topic


def request(name: str, time: int) -> Request:
    access = Access("CREATE", "TOPIC", name)
    return Request(
        principal="User:a", host="h", request="CreateTopics", first=time, last=time, accesses=frozenset({access}),
        names=frozenset({name}), names_all=False, file="f",
    )  # fmt: skip


def records(**times: int) -> dict[int, ChangedRecord]:
    return {
        offset: ChangedRecord(time, cause_of(topic(offset, name), {}))
        for offset, (name, time) in enumerate(times.items())
    }


def test_a_clock_that_is_behind_is_found_and_what_disagrees_left_out() -> None:
    requests = [request("a", 1_000), request("b", 2_000), request("c", 3_010), request("d", 4_000)]
    found = estimate(requests, records(a=91_005, b=92_005, c=93_005, d=4_000), resolution=0)
    assert found == Clock(difference=90_005, pairs=3, least=89_995 - 100, most=90_005 + 500)


def test_a_request_that_was_repeated_is_in_no_pair() -> None:
    requests = [request("a", 1_000), request("b", 2_000), request("c", 3_000), request("c", 3_500)]
    assert not estimate(requests, records(a=1_001, b=2_001, c=3_001), resolution=0).pairs


def test_pairs_of_which_no_half_agrees_say_nothing() -> None:
    requests = [request(name, 1_000) for name in "abcdef"]
    found = estimate(requests, records(a=1_000, b=1_000, c=1_000, d=50_000, e=90_000, f=130_000), resolution=1_000)
    assert found == Clock(least=-1_100)
