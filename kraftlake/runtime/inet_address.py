"""IP addresses and address ranges, parsed exactly as in Kafka's Java, without a name service.

Sources: java.net.InetAddress.getByName of Java 17, org.apache.kafka.server.authorizer.internals.CidrUtils of Kafka 4.4
and the classes SubnetUtils and SubnetUtils6 of Apache Commons Net that it calls.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final

import attrs

_IPV4_BYTES: Final = 4
_IPV6_BYTES: Final = 16
_LONGEST_IPV4: Final = 15
_LARGEST_ZONE: Final = 2**31 - 1
_MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"
_DOTTED: Final = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_DIGITS: Final = re.compile(r"[0-9]+")
_LEADING_ZEROS: Final = re.compile(r"\b0+(?=[0-9A-Fa-f])")
_PREFIX_LENGTH: Final = re.compile(r"[+-]?\d+")


def inet_address(text: str) -> bytes | None:
    """Parse an address literal into 4 or 16 bytes; None for any other text, such as a host name.

    As in Java, an IPv4 address may have one to four numbers (`10.1` is 10.0.0.1), all decimal; an IPv6 address may be
    in brackets and have a zone; an IPv4-mapped IPv6 address is returned as the IPv4 address. The name of a zone is not
    checked against the network interfaces.
    """
    bracketed = text.startswith("[") and text.endswith("]")
    if bracketed:
        text = text[1:-1]
    else:
        address = _ipv4(text)
        if address is not None:
            return address
    literal, percent, zone = text.partition("%")
    # Python refuses to parse thousands of digits; a number of eleven digits is above the largest zone.
    if percent and (not zone or (_DIGITS.fullmatch(zone) and int(zone.lstrip("0")[:11] or "0") > _LARGEST_ZONE)):
        return None
    address = _ipv6(literal)
    if address is None or not address.startswith(_MAPPED_PREFIX):
        return address
    return None if percent else address[len(_MAPPED_PREFIX) :]


def address_text(address: bytes) -> str:
    """The text of an address of 4 or 16 bytes, which brokers compare. Source: java.net.InetAddress.getHostAddress."""
    if len(address) == _IPV4_BYTES:
        return ".".join(map(str, address))
    return ":".join(f"{address[at] << 8 | address[at + 1]:x}" for at in range(0, _IPV6_BYTES, 2))


def _ipv4(text: str) -> bytes | None:
    numbers = text.split(".")
    if len(text) > _LONGEST_IPV4 or len(numbers) > _IPV4_BYTES or not all(map(_DIGITS.fullmatch, numbers)):
        return None
    *first, last = map(int, numbers)
    rest = _IPV4_BYTES - len(first)
    if any(number > 255 for number in first) or last >= 256**rest:
        return None
    return bytes(first) + last.to_bytes(rest, "big")


def _ipv6(text: str) -> bytes | None:
    last = text.rpartition(":")[2]
    if "." in last and len(last) > _LONGEST_IPV4:
        return None
    try:
        # Java allows leading zeros, Python does not.
        return IPv6Address(_LEADING_ZEROS.sub("", text)).packed
    except ValueError:
        return None


@attrs.frozen
class AddressRange:
    """All addresses whose first `prefix_length` bits are those of `network`, an address of 4 or 16 bytes."""

    network: bytes
    prefix_length: int

    @classmethod
    def parse(cls, text: str) -> AddressRange:
        """Parse a range such as `10.0.0.0/8` or `2001:db8::/32`, in the syntax of CidrUtils.validate.

        An IPv4 range has four decimal numbers and a prefix length of one or two digits, and no netmask. Raises
        ValueError with the reason.
        """
        address, slash, prefix = text.partition("/")
        if not slash:
            raise ValueError("it has no prefix length, as in 10.0.0.0/8")
        if ":" in text:
            return cls._parse_ipv6(address, prefix)
        dotted = _DOTTED.fullmatch(address)
        if dotted is None:
            raise ValueError(f"{address!r} is not four decimal numbers")
        numbers = [int(number) for number in dotted.groups()]
        if max(numbers) > 255:
            raise ValueError(f"{max(numbers)} is above 255")
        if not re.fullmatch(r"[0-9]{1,2}", prefix) or int(prefix) > 32:
            raise ValueError(f"the prefix length {prefix!r} is not a number from 0 to 32")
        return cls(bytes(numbers), int(prefix))

    @classmethod
    def _parse_ipv6(cls, address: str, prefix: str) -> AddressRange:
        # Integer.parseInt takes a sign, and the digits of any script.
        if not _PREFIX_LENGTH.fullmatch(prefix) or not 0 <= int(prefix) <= 128:
            raise ValueError(f"the prefix length {prefix!r} is not a number from 0 to 128")
        network = inet_address(address)
        if network is None or len(network) != _IPV6_BYTES:
            raise ValueError(f"{address!r} is not an IPv6 address")
        return cls(network, int(prefix))

    def __contains__(self, host: str) -> bool:
        """Whether the address `host` lies in the range; as in Kafka, 0.0.0.0 lies in none."""
        if len(self.network) == _IPV4_BYTES and _DOTTED.fullmatch(host) is None:
            return False
        address = inet_address(host)
        if address is None or len(address) != len(self.network) or address == bytes(_IPV4_BYTES):
            return False
        ignored = 8 * len(address) - self.prefix_length
        return int.from_bytes(address, "big") >> ignored == int.from_bytes(self.network, "big") >> ignored
