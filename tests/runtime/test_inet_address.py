"""Addresses and ranges as Kafka's Java reads them; tests/interop compares them with Java itself."""

from __future__ import annotations

import pytest

from kraftlake.runtime.inet_address import AddressRange, inet_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "0a000001"),
        ("010.0.0.1", "0a000001"),
        ("10.1", "0a000001"),
        ("256", "00000100"),
        ("::ffff:10.0.0.1", "0a000001"),
        ("[fe80::1]", "fe80" + 13 * "00" + "01"),
        ("fe80::1%2", "fe80" + 13 * "00" + "01"),
        ("2001:db8:0:0:0:0:0:5", "20010db8" + 11 * "00" + "05"),
        ("::", 16 * "00"),
    ],
)
def test_an_address_is_read_as_java_reads_it(text: str, address: str) -> None:
    found = inet_address(text)
    assert found is not None
    assert found.hex() == address


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "1.2.3.256", "1.2.3.4.5", "0x10", "1:2", "::1%", "::1%4294967296", "::1%" + 5000 * "9",
     ":::", "1:2:3:4:5:6:7:8::",
     "[10.0.0.1]", "::ffff:10.0.0.1%1", "٣.0.0.1"],
)  # fmt: skip
def test_an_invalid_address_is_none(text: str) -> None:
    assert inet_address(text) is None


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("10.0.0.0", "no prefix length"),
        ("10.0.0.0/255.0.0.0", "is not a number from 0 to 32"),
        ("10.0.0.0/33", "is not a number from 0 to 32"),
        ("10.0.0/8", "is not four decimal numbers"),
        ("10.0.0.256/8", "256 is above 255"),
        ("fe80::/129", "is not a number from 0 to 128"),
        ("::ffff:10.0.0.0/104", "is not an IPv6 address"),
    ],
)
def test_a_range_that_kafka_refuses_is_refused_with_the_part_at_fault(pattern: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        AddressRange.parse(pattern)


@pytest.mark.parametrize(
    ("host", "pattern", "inside"),
    [
        ("10.9.0.1", "010.0.0.0/8", True),
        ("fe80:0:0:0:0:0:0:1", "[fe80::]/32", True),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::/+10", True),
        ("0.0.0.0", "0.0.0.0/0", False),
        ("10.1", "10.0.0.0/8", False),
        ("10.0.0.1", "::/0", False),
    ],
)
def test_a_host_is_in_a_range_if_it_is_in_kafka(host: str, pattern: str, inside: bool) -> None:
    assert (host in AddressRange.parse(pattern)) == inside
