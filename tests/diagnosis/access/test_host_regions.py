from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.diagnosis.access.host_regions import HostRegion, host_regions
from kraftlake.publisher.authorizer import is_in_range


def test_ranges_lie_within_ranges_and_each_has_an_address_of_its_own() -> None:
    assert host_regions(["10.0.0.5", "10.0.0.0/8", "*", "10.0.0.4/30", "10.0.0.6"]) == [
        HostRegion("10.0.0.0/8", "10.0.0.0"),
        HostRegion("10.0.0.4/30", "10.0.0.4", "10.0.0.0/8"),
        HostRegion("10.0.0.5", "10.0.0.5", "10.0.0.4/30"),
        HostRegion("10.0.0.6", "10.0.0.6", "10.0.0.4/30"),
    ]


def test_a_range_without_an_address_of_its_own_is_none() -> None:
    halves = ["10.0.0.0/31", "10.0.0.2/31"]
    assert [region.pattern for region in host_regions([*halves, "10.0.0.0/30"])] == halves


def test_a_range_of_everything_has_another_address_than_zero_which_kafka_counts_to_no_range() -> None:
    assert host_regions(["0.0.0.0/0"]) == [HostRegion("0.0.0.0/0", "0.0.0.1")]


@pytest.mark.parametrize("host", ["db1", "2001:db8::5", "010.0.0.1", "10.1", "10.0.0.0/33", ""])
def test_what_no_client_has_as_its_address_is_no_region(host: str) -> None:
    assert host_regions([host]) == []


addresses = st.integers(0, 15).map(lambda last: f"10.0.0.{last}")
sixth = st.integers(0, 15).map(lambda last: f"2001:db8:0:0:0:0:0:{last:x}")
patterns = addresses | sixth | st.builds("{}/{}".format, addresses, st.integers(27, 32))
patterns |= st.builds("{}/{}".format, sixth, st.integers(124, 128))


@given(st.sets(patterns, max_size=8))
def test_each_address_is_in_the_smallest_region_around_it(given_patterns: set[str]) -> None:
    def of(host: str) -> frozenset[str]:
        return frozenset(one for one in given_patterns if one == host or is_in_range(host, one))

    regions = host_regions(given_patterns)
    hosts = [f"10.0.0.{last}" for last in range(16)] + [f"2001:db8:0:0:0:0:0:{last:x}" for last in range(16)]
    named = {of(region.host) for region in regions}
    assert {of(host) for host in hosts} - {frozenset()} <= named
    assert len(named) == len(regions)
    assert all(region.pattern in of(region.host) for region in regions)  # may assert nothing: no patterns, no regions
