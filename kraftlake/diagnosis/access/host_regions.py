"""The hosts between which ACLs distinguish: single addresses, ranges, and all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from kraftlake.publisher.acl_cache import WILDCARD
from kraftlake.runtime.inet_address import AddressRange, address_text, inet_address

_IPV4_BYTES: Final = 4
ANY_OTHER: Final = ""
"""A host that is in no range, and that no ACL names."""


@attrs.frozen
class HostRegion:
    """Addresses that the same ACLs are about: `pattern` without the smaller regions in it; `host` is one of them.

    `within` is the pattern of the smallest region around it, `*` for none.
    """

    pattern: str
    host: str
    within: str = WILDCARD


@attrs.frozen(order=True)
class _Span:
    size: int
    first: int
    end: int
    """After the last address, negative: larger spans sort before those within them."""
    pattern: str = attrs.field(order=False)

    @property
    def last(self) -> int:
        return -self.end - 1

    @property
    def text(self) -> str:
        return address_text(self.first.to_bytes(self.size, "big"))


def host_regions(patterns: Iterable[str]) -> list[HostRegion]:
    """The regions that the hosts of ACLs divide all addresses into, beside that of all other hosts.

    A host that is not the text of an address as brokers compare it is left out: no client has it.
    """
    spans = sorted({(one.size, one.first, one.end): one for one in map(_span, sorted({*patterns})) if one}.values())
    regions: list[HostRegion] = []
    around: list[_Span] = []
    known: set[str] = set()
    for number, span in enumerate(spans):
        around = [one for one in around if one.size == span.size and one.last >= span.last]
        host = _own_host(span, spans[number + 1 :])
        if host is not None:
            within = next((one.pattern for one in reversed(around) if one.pattern in known), WILDCARD)
            regions.append(HostRegion(span.pattern, host, within))
            known.add(span.pattern)
        around.append(span)
    return regions


def _span(pattern: str) -> _Span | None:
    address = inet_address(pattern)
    if address is not None:
        first = int.from_bytes(address, "big")
        return _Span(len(address), first, -first - 1, pattern) if address_text(address) == pattern else None
    try:
        range_ = AddressRange.parse(pattern)
    except ValueError:
        return None
    size = len(range_.network)
    length = 1 << (8 * size - range_.prefix_length)
    first = int.from_bytes(range_.network, "big") // length * length
    return _Span(size, first, -first - length, pattern)


def _own_host(span: _Span, later: Iterable[_Span]) -> str | None:
    """An address in a span and in none of the spans within it, which are the first of the later ones."""
    if span.first == span.last and "/" not in span.pattern:
        return span.text
    is_zero = span.size == _IPV4_BYTES and span.first == 0  # 0.0.0.0 is in no range of Kafka's
    free = span.first + is_zero
    for inner in later:
        if inner.size != span.size or inner.first > free:
            break
        free = max(free, inner.last + 1)
    return _Span(span.size, free, -free - 1, "").text if free <= span.last else None
