"""Registers a controller with the cluster (KIP-919). Source: kafka.server.ControllerRegistrationManager."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from kraftlake.controller.cluster.controllers import ControllerRegistrationRequest, register_controller
from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.endpoint import Endpoint
from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import wire_id
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.backoff import Backoff
from kraftlake.runtime.log import get_logger
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.quorum_view import NOBODY

_BACKOFF: Final = Backoff(base=0.1, cap=5.0)
_ANSWER_SECONDS: Final = 5.0


class Registrar:
    """Registers until the image has the registration, in a thread, from `start` to `close`.

    The active controller registers itself; a standby sends a request to the active controller's listener named
    `listener`, or, if the log does not show the active one, to those of all others. `end` gets the reason if another
    process registers with this one's id.
    """

    def __init__(
        self,
        node: ControllerNode,
        registration: ControllerRegistrationRequest,
        *,
        listener: str,
        end: Callable[[str], object],
    ) -> None:
        self._node = node
        self._registration = registration
        self._listener = listener
        self._end = end
        self._abort = Abort()
        self._connect = NodeConnector(timeout=_ANSWER_SECONDS)
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._was_registered = False
        self._log = get_logger(__name__).bind(controller=node.node_id)
        self._thread = threading.Thread(target=self._run, name="controller-registration", daemon=True)
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
                if self._is_due():
                    self._register()
                failures = 0
            except (NodeError, ControllerApiError, TimeoutError) as fault:
                failures += 1
                if failures & (failures - 1) == 0:  # ever more rarely
                    self._log.warning("not_registered", failures=failures, cause=str(fault))
            self._changed.wait(_BACKOFF.pause(failures, 0.5) if failures else None)
            if failures:
                self._closing.wait(_BACKOFF.base)

    def _is_due(self) -> bool:
        """Whether the registration is missing, and a controller that can write it is known."""
        image = self._node.view.image
        version = image.features.metadata_version
        if version is None or not version.is_controller_registration_supported:
            return False
        found = image.cluster.controllers.get(self._node.node_id)
        if found is not None and found.incarnation_id == self._registration.incarnation_id:
            if not self._was_registered:
                self._log.info("registered", offset=image.offset)
            self._was_registered = True
            return False
        if found is not None and self._was_registered:
            self._end(f"another process has registered as controller {self._node.node_id}")
            return False
        return True

    def _register(self) -> None:
        """Register. Raises NodeError, ControllerApiError or TimeoutError on failure."""
        if self._node.controller.is_active:
            done = self._node.controller.submit(lambda state: register_controller(state, self._registration))
            done.result(_ANSWER_SECONDS)
            return
        leader_id, endpoints = self._node.view.leader_id, self._node.view.endpoints(self._listener)
        if leader_id == NOBODY and self._node.view.leader.epoch > 0:
            self._ask_all(endpoints)  # the log was trimmed past the leader's claim: any of them may be the one
            return
        if leader_id == self._node.node_id or leader_id not in self._node.view.image.cluster.controllers:
            return  # a later image tells who leads and where: the active controller registers itself
        if leader_id not in endpoints:
            raise NodeError(f"Controller {leader_id}, which leads, has no listener {self._listener}.")
        self._ask(endpoints[leader_id])

    def _ask_all(self, endpoints: Mapping[int, Endpoint]) -> None:
        refused: NodeError | None = None
        for id_, endpoint in endpoints.items():
            if id_ == self._node.node_id:
                continue
            try:
                self._ask(endpoint)
            except NodeError as fault:
                refused = fault
            else:
                return
        if refused is not None:
            raise refused

    def _ask(self, endpoint: Endpoint) -> None:
        with self._connect(Address(endpoint.host, endpoint.port), abort=self._abort) as client:
            answer = client.ask("controller_registration", range(1), self._request)
        if answer.error_code != ErrorCode.NONE:
            raise NodeError(f"{endpoint.host}:{endpoint.port} refuses the registration: {answer.error_code.name}.")

    def _request(self, module: Any) -> Any:
        asked = self._registration
        return module.ControllerRegistrationRequest(
            controller_id=asked.controller_id, incarnation_id=wire_id(asked.incarnation_id), zk_migration_ready=False,
            listeners=tuple(
                module.Listener(
                    name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol
                )
                for one in asked.listeners
            ),
            features=tuple(
                module.Feature(
                    name=one.name, min_supported_version=one.min_supported_version,
                    max_supported_version=one.max_supported_version,
                )
                for one in asked.features
            ),
        )  # fmt: skip
