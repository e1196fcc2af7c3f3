"""The work of a controller that needs the active controller, in a thread of its own."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Final

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.leader_connection import LeaderConnection
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.backoff import Backoff
from kraftlake.server.controller.controller_node import ControllerNode

ANSWER_SECONDS: Final = 5.0
_BACKOFF: Final = Backoff(base=0.1, cap=5.0)


class LeaderTask(ABC):
    """Does its work from `start` to `close`, again after each change of the image or the leader, and after failures.

    The other controllers are asked at their listener named `listener`, over connections configured by `client`.
    """

    def __init__(self, name: str, node: ControllerNode, *, listener: str, client: ClientConfig) -> None:
        self._node = node
        self._listener = listener
        self._abort = Abort()
        connect = NodeConnector(config=client, timeout=ANSWER_SECONDS)
        self._leader = LeaderConnection(lambda address: connect(address, abort=self._abort))
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        node.view.listeners.append(self._changed.set)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, including a pending wait for another controller."""
        self._closing.set()
        self._abort.set()
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            self._changed.clear()
            try:
                goes_on = self._work()
                failures = 0
            except (NodeError, ControllerApiError, TimeoutError) as fault:
                failures += 1
                self._leader.close()
                self._failed(failures, fault)
                self._changed.wait(_BACKOFF.pause(failures, 0.5))
                self._closing.wait(_BACKOFF.base)
                continue
            if not goes_on:
                self._leader.close()
                self._changed.wait()
        self._leader.close()

    @abstractmethod
    def _work(self) -> bool:
        """Work once; returns whether to go on at once. Raises NodeError, ControllerApiError or TimeoutError."""

    def _failed(self, failures: int, fault: Exception) -> None:  # noqa: B027 - a task need not report
        """Report a failure, which is followed by another attempt."""

    def _addresses(self) -> dict[int, Address]:
        """The addresses of the other controllers, by node id."""
        endpoints = self._node.view.endpoints(self._listener)
        return {id_: Address(one.host, one.port) for id_, one in endpoints.items() if id_ != self._node.node_id}
