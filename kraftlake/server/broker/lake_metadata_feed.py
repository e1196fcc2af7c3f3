"""Feeds a broker's metadata loader with the log of a lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.address import Address
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import sentence_of

_POLL_SECONDS: Final = 0.002
"""The interval between two polls of the lake: each poll wakes the process up, which takes 0.1 ms of CPU."""
_IDLE_POLL_SECONDS: Final = 0.015
"""The interval between two polls while nothing changes."""


class LakeMetadataFeed:
    """Reads the lake on the loader's thread, from `start` on; the feed ends with the loader.

    `fail` gets a sentence if the lake can't be read any more. Controllers are reached at their listener named
    `listener`, at any if that is None.
    """

    def __init__(
        self, log: MetadataLog, clock: Clock, fail: Callable[[str], object], *, listener: str | None = None
    ) -> None:
        self._fail = fail
        self._listener = listener
        self._feed = LakeFeed(log, clock, self, poll=_POLL_SECONDS, idle_poll=_IDLE_POLL_SECONDS)
        self._loader: MetadataLoader | None = None

    def high_watermark(self) -> int | None:
        """The end of the log when the feed began to read; None before."""
        return self._feed.end_at_start

    @property
    def controller(self) -> Address | None:
        """The address of the controller that is the leader according to the log; None while unknown."""
        if self._loader is None:
            return None
        leader, registered = self._loader.leader.leader_id, self._loader.image.cluster.controllers
        known = None if leader is None else registered.get(leader)
        return None if known is None else next(self._addresses(known), None)

    def controllers(self) -> Sequence[Address]:
        """The addresses of the registered controllers."""
        if self._loader is None:
            return ()
        return [address for one in self._loader.image.cluster.controllers.values() for address in self._addresses(one)]

    def start(self, loader: MetadataLoader) -> None:
        """Begin to feed the loader with the log."""
        self._loader = loader
        self._feed.start(loader)

    def close(self) -> None:
        """Return without action: the feed ends with the loader."""

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """End the broker: without the log, it would continue with outdated metadata."""
        reason = sentence_of(cause) if isinstance(cause, Exception) else what
        self._fail(f"the metadata log can't be followed: {reason.rstrip('.')}")

    def _addresses(self, controller: ControllerRegistration) -> Iterator[Address]:
        return (
            Address(end.host, end.port) for name, end in controller.listeners.items() if self._listener in (None, name)
        )
