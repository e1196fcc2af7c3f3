"""The life of a node's process: from its start until it is asked to stop, or ends by itself."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.health import Health
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.server.requests.authentication_counts import register_authentications
from kraftlake.server.requests.dispatcher import Dispatcher, Peer, Respond
from kraftlake.server.requests.listener import RequestListener


class NodeEndedError(KraftlakeError):
    """The node has ended without being asked to."""


class NodeLife(ABC):
    """One process of a node, from `run` until `stop` is set.

    `named` is the node in an error, such as `Broker 1`. The listeners pass requests to `_handle`, which has
    `dispatcher` answer them; until it is set, each connection is closed at its first request. At `metrics` the node
    serves `registry` and its health from before its start until its end.
    """

    def __init__(
        self,
        named: str,
        *,
        without_effect: Mapping[str, str],
        stop: threading.Event,
        clock: Clock | None,
        log: Any,
        metrics: MetricsAddress | None = None,
    ) -> None:
        self._named = named
        self._without_effect = without_effect
        self._stop = stop
        self._clock = clock or SystemClock()
        self._log = log
        self._ended: str | None = None
        """The reason why the node ends unasked."""
        self.dispatcher: Dispatcher | None = None
        self.registry = MetricsRegistry()
        self.listeners: Sequence[RequestListener] = ()
        """The listeners for requests."""
        register_authentications(self.registry, lambda: {one.name: one.authentications for one in self.listeners})
        self._metrics = metrics

    @abstractmethod
    def _live(self, closing: ExitStack) -> None:
        """Run the node until its end; then close the contents of `closing`, the last first."""

    @abstractmethod
    def unready(self) -> str | None:
        """One line on why the node does not do its work yet, or any more; None while it does."""

    def run(self) -> None:
        """Run the node until `stop` is set.

        Raises NodeEndedError if it ended by itself, EnvironmentFaultError where its metrics can't be served, and as
        `_live`.
        """
        for setting, why in self._without_effect.items():
            self._log.warning("setting_without_effect", setting=setting, why=why)
        with self._serving() as url, ExitStack() as closing:
            if url is not None:
                self._log.info("serves_metrics", url=url)
            self._live(closing)
        if self._ended is not None:
            raise NodeEndedError(f"{self._named} has ended: {self._ended}.")

    def _serving(self) -> AbstractContextManager[str | None]:
        if self._metrics is None:
            return nullcontext()
        from kraftlake.runtime.metrics_server import served  # imports prometheus_client

        return served(self.registry, self._metrics, Health(dead=lambda: self._ended, unready=self._why_not))

    def _why_not(self) -> str | None:
        return f"{self._named} is to end" if self._stop.is_set() else self._ended or self.unready()

    def end(self, why: str) -> None:
        """End the node; `run` raises `why` as the reason."""
        self._ended = self._ended or why

    def _handle(self, frame: bytes, peer: Peer, respond: Respond) -> None:
        """Answer a request."""
        if self.dispatcher is None:
            respond(None)
        else:
            self.dispatcher.handle(frame, peer, respond)

    def _log_fault(self, event: str, fault: BaseException) -> None:
        """Log the fault of a request."""
        self._log.warning(event, cause=f"{type(fault).__name__}: {fault}")
