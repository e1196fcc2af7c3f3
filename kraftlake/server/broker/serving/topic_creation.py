"""Creation of missing topics that clients request: `auto.create.topics.enable`.

Source: kafka.server.DefaultAutoTopicCreationManager.
"""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from threading import Lock
from typing import Any, Final

from kio.static.primitive import i32Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import encoded_request, request_type, versions_of

_DEFAULT: Final = -1
"""Leaves the number of partitions or the replication factor to the controller."""


class AutoTopicCreation:
    """Requests the creation of topics from the active controller, one request per topic at a time.

    The client then repeats its metadata request.
    """

    def __init__(self, forwarding: ForwardingManager, *, timeout_ms: int = 30_000) -> None:
        self._forwarding = forwarding
        self._timeout = i32Timedelta.parse(timedelta(milliseconds=timeout_ms))
        self._lock = Lock()
        self._in_flight: set[str] = set()

    def __call__(self, request: Request, names: list[str]) -> dict[str, ErrorCode]:
        """Begin to create topics for a client; returns the error of each topic until it exists."""
        with self._lock:
            new = [name for name in names if name not in self._in_flight]
            self._in_flight.update(new)
        if new:

            def done(_: Any) -> None:
                with self._lock:
                    self._in_flight.difference_update(new)

            self._forwarding.forward(self._frame(new, request.client_id), request.peer, done)
        return dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _frame(self, names: list[str], client_id: str | None) -> bytes:
        """Return a request in the client's name, so that its quota of mutations counts."""
        kind = request_type("create_topics", versions_of("create_topics")[-1])
        module = import_module(kind.__module__)
        topics = tuple(
            module.CreatableTopic(
                name=name, num_partitions=_DEFAULT, replication_factor=_DEFAULT, assignments=(), configs=()
            )
            for name in names
        )
        request = kind(topics=topics, timeout=self._timeout, validate_only=False)
        return encoded_request(request, client_id=None if client_id is None else client_id.encode())
