"""Connections that have not logged in yet: their number, their time and their share of the listener's work."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from kraftlake.server.requests.buffered_bytes import BufferedBytes

MAX_GUESTS: Final = 1_024
"""The maximum number of connections without a login; the oldest gives way to a new one."""
MAX_GUESTS_OF_HOST: Final = 256
"""The same for one address."""
MAX_GUEST_BYTES: Final = 16 * 1024 * 1024
"""The maximum size of their incomplete requests; beyond it, the oldest is closed."""
MAX_GUEST_BYTES_OF_HOST: Final = 4 * 1024 * 1024
"""The same for one address."""
LOGIN_SECONDS: Final = 30.0
"""The time from the accept of a connection to the end of its TLS handshake and its login."""


class HostBytes(BufferedBytes):
    """Counts the bytes of one address' connections, also in `whole`, which has those of all addresses."""

    def __init__(self, most: int, whole: BufferedBytes) -> None:
        super().__init__(most)
        self._whole = whole

    def hold(self, abort: Callable[[], None], size: int) -> None:
        """Set the number of bytes that a connection holds, which `abort` ends; 0 if there are none."""
        super().hold(abort, size)
        self._whole.hold(abort, size)


class Doorway:
    """Admits connections to a listener with TLS or logins, and does one step of their work in each turn of the loop.

    Therefore a turn, for which all other connections wait, is never longer by more than one handshake or one message of
    a login, whatever the number of newcomers. All calls are from the loop's thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._guests: dict[Callable[[], None], str] = {}
        """The host of each guest, by the function that ends its connection, the oldest first."""
        self._of_host: dict[str, dict[Callable[[], None], asyncio.TimerHandle]] = {}
        self._steps: deque[Callable[[], None]] = deque()
        self._bytes = BufferedBytes(MAX_GUEST_BYTES)
        self._bytes_of_host: dict[str, HostBytes] = {}

    @property
    def guests(self) -> int:
        """The number of connections that have not logged in."""
        return len(self._guests)

    def bytes_of(self, host: str) -> BufferedBytes:
        """The counter of the bytes that connections of an address hold before their login."""
        return self._bytes_of_host.setdefault(host, HostBytes(MAX_GUEST_BYTES_OF_HOST, self._bytes))

    def enter(self, abort: Callable[[], None], host: str) -> None:
        """Count a new connection, which `abort` ends; beyond a limit, or after its time, it is called."""
        while len(self._of_host.get(host, ())) >= MAX_GUESTS_OF_HOST:
            self._show_out(next(iter(self._of_host[host])))
        while len(self._guests) >= MAX_GUESTS:
            self._show_out(next(iter(self._guests)))
        self._guests[abort] = host
        timer = self._loop.call_later(LOGIN_SECONDS, self._show_out, abort)
        self._of_host.setdefault(host, {})[abort] = timer

    def leave(self, abort: Callable[[], None]) -> None:
        """Take a connection off the count: it has logged in, or has ended."""
        host = self._guests.pop(abort, None)
        if host is not None:
            of_host = self._of_host[host]
            of_host.pop(abort).cancel()
            if not of_host:
                del self._of_host[host]
                self._bytes_of_host.pop(host, None)

    def later(self, step: Callable[[], None]) -> None:
        """Do a step of a login in one of the next turns of the loop, in order."""
        self._steps.append(step)
        if len(self._steps) == 1:
            self._loop.call_soon(self._do_one)

    def _do_one(self) -> None:
        try:
            self._steps[0]()
        finally:
            self._steps.popleft()
            if self._steps:
                self._loop.call_soon(self._do_one)

    def _show_out(self, abort: Callable[[], None]) -> None:
        self.leave(abort)
        abort()
