"""Keeps a standby in contact with the active controller: reports its progress, and detects the leader's resignation.

Source: KIP-595 (followers fetch from the leader, EndQuorumEpoch); the records themselves come from the lake.
"""

from __future__ import annotations

import threading
from typing import Final

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.requests import OffsetAndEpoch, fetch
from kraftlake.runtime.backoff import Backoff
from kraftlake.server.controller.controller_node import ControllerNode

_WAIT_MS: Final = 500
_ANSWER_SECONDS: Final = 5.0
_BACKOFF: Final = Backoff(base=0.1, cap=2.0)


class LeaderWatch:
    """Fetches from the active controller's listener named `listener`, in a thread, from `start` to `close`."""

    def __init__(self, node: ControllerNode, *, listener: str) -> None:
        self._node = node
        self._listener = listener
        self._abort = Abort()
        self._connect = NodeConnector(timeout=_ANSWER_SECONDS)
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._client: NodeClient | None = None
        self._thread = threading.Thread(target=self._run, name="leader-watch", daemon=True)
        node.view.listeners.append(self._changed.set)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, including a pending fetch from the active controller."""
        self._closing.set()
        self._abort.set()
        self._changed.set()
        self._thread.join()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            self._changed.clear()
            leads_on = False
            try:
                leads_on = self._ask()
                failures = 0
            except NodeError:
                failures += 1
                self._forget()
            if failures:
                self._closing.wait(_BACKOFF.pause(failures, 0.5))
            elif not leads_on:
                self._forget()
                self._changed.wait()
        self._forget()

    def _ask(self) -> bool:
        """Fetch once; False if no controller can be asked before the image or the leader changes. Raises NodeError."""
        node = self._node
        leader, image = node.view.leader, node.view.image
        if node.controller.is_active or leader.leader_id in (None, node.node_id):
            return False
        endpoint = node.view.endpoints(self._listener).get(leader.leader_id)
        if endpoint is None:
            return False
        address = Address(endpoint.host, endpoint.port)
        if self._client is None or self._client.address != address:
            self._forget()
            self._client = self._connect(address, abort=self._abort)
        at = OffsetAndEpoch(offset=image.offset + 1, epoch=image.provenance.epoch)
        answer = fetch(
            self._client, at, leader_epoch=leader.epoch, cluster_id=node.cluster_id or None, wait_ms=_WAIT_MS,
            high_watermark=at.offset, replica_id=node.node_id,
        )  # fmt: skip
        if answer.batches or answer.snapshot is not None:
            self._changed.wait(_WAIT_MS / 1000)  # what it lacks comes from the lake: the leader would answer at once
        if answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and answer.leader.epoch == leader.epoch:
            node.controller.expect_vacancy(leader.epoch)
        return answer.error == ErrorCode.NONE

    def _forget(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
