"""The address at which a process serves its metrics and its health."""

from __future__ import annotations

import ipaddress

import attrs

from kraftlake.runtime.errors import UsageError

_LOOPBACK = "127.0.0.1"


@attrs.frozen(kw_only=True)
class MetricsAddress:
    """The address of the metrics endpoint; port 0 selects any free port."""

    port: int
    host: str = _LOOPBACK
    insecure: bool = False

    @classmethod
    def parse(cls, text: str) -> MetricsAddress:
        """Parse `[HOST:]PORT`, on loopback without a host; an IPv6 address is in brackets. Raises UsageError."""
        host, colon, port = text.strip().rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        is_host = not colon or (bool(bare) and (":" not in bare or bare != host))
        if not is_host or not (port.isascii() and port.isdecimal()) or len(port) > 5 or int(port) >= 65536:
            raise UsageError(
                f"{text!r} is no address for metrics: give a port from 0 (any free one) to 65535, or HOST:PORT."
            )
        return cls(port=int(port), host=bare or _LOOPBACK)

    @property
    def is_exposed(self) -> bool:
        """Whether other machines reach it, which it has no leave for."""
        return not self.insecure and not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether the address is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
