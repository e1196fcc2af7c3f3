"""Feeds the metadata loader of a broker with the log of a lake."""

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
"""How often the lake is looked at: each look wakes the process up, which takes a tenth of a millisecond of CPU."""
_IDLE_POLL_SECONDS: Final = 0.015
"""How often while nothing changes."""


class LakeMetadataFeed:
    """Reads the lake on the loader's thread, from `start` on; the loader's end is its end.

    `fail` gets the sentence of a lake that can't be read any more.
    """

    def __init__(self, log: MetadataLog, clock: Clock, fail: Callable[[str], object]) -> None:
        self._fail = fail
        self._feed = LakeFeed(log, clock, self, poll=_POLL_SECONDS, idle_poll=_IDLE_POLL_SECONDS)
        self._loader: MetadataLoader | None = None

    def high_watermark(self) -> int | None:
        """The end of the log when the feed began to read, None before that."""
        return self._feed.end_at_start

    @property
    def controller(self) -> Address | None:
        """Where the controller is that leads by the log, None while that is not known."""
        if self._loader is None:
            return None
        leader, registered = self._loader.leader.leader_id, self._loader.image.cluster.controllers
        known = None if leader is None else registered.get(leader)
        return None if known is None else next(iter(_addresses(known)), None)

    def controllers(self) -> Sequence[Address]:
        """Where the controllers are by their registrations."""
        if self._loader is None:
            return ()
        return [address for one in self._loader.image.cluster.controllers.values() for address in _addresses(one)]

    def start(self, loader: MetadataLoader) -> None:
        """Begin to give the loader what is in the log."""
        self._loader = loader
        self._feed.start(loader)

    def close(self) -> None:
        """Do nothing: the feed ends with the loader."""

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        """End the broker: without the log it would go on with old metadata."""
        told = sentence_of(cause) if isinstance(cause, Exception) else what
        self._fail(f"the metadata log can't be followed: {told.rstrip('.')}")


def _addresses(controller: ControllerRegistration) -> Iterator[Address]:
    return (Address(end.host, end.port) for end in controller.listeners.values())
