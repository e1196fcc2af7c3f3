from __future__ import annotations

import pytest

from kraftlake.protocol.address import Address, joined_addresses, parse_addresses
from kraftlake.runtime.errors import UsageError


def test_several_addresses_are_taken_each_once() -> None:
    found = parse_addresses("one:9092, two.example:1,[::1]:65535,one:9092")
    assert found == (Address("one", 9092), Address("two.example", 1), Address("::1", 65535))
    assert [str(address) for address in found] == ["one:9092", "two.example:1", "[::1]:65535"]


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":9092", "host:x", "host:0", "host:65536", "::1:9092", "host:-1", "a:1,", "host:²"]
)
def test_the_error_names_an_invalid_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"HOST:PORT|ports go"):
        parse_addresses(text)


def test_several_addresses_among_sources_are_one_source() -> None:
    assert joined_addresses(["d1", "a:1,b:2", "d2", "kafka://c:3"]) == ("d1", "a:1,b:2,c:3", "d2")
    assert joined_addresses(["d1", "kafka://c:3"]) == ("d1", "kafka://c:3")
    assert joined_addresses(["d1", "d2"]) == ("d1", "d2")
