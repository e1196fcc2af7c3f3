"""Registers a controller with the cluster (KIP-919). Source: kafka.server.ControllerRegistrationManager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftlake.controller.cluster.controllers import ControllerRegistrationRequest, register_controller
from kraftlake.protocol.broker_requests import end_points_as, feature_levels_as
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import wire_id
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NodeError
from kraftlake.runtime.log import get_logger
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.leader_task import ANSWER_SECONDS, LeaderTask
from kraftlake.server.controller.quorum_view import NOBODY


class Registrar(LeaderTask):
    """Registers until the image has the registration.

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
        client: ClientConfig,
        end: Callable[[str], object],
    ) -> None:
        super().__init__("controller-registration", node, listener=listener, client=client)
        self._registration = registration
        self._end = end
        self._was_registered = False
        self._log = get_logger(__name__).bind(controller=node.node_id)

    def _work(self) -> bool:
        """Register if that is due; the next image shows the success."""
        if self._is_due():
            self._register()
        return False

    def _failed(self, failures: int, fault: Exception) -> None:
        if failures & (failures - 1) == 0:  # ever more rarely
            self._log.warning("not_registered", failures=failures, cause=str(fault))

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
        node = self._node
        if node.controller.is_active:
            done = node.controller.submit(lambda state: register_controller(state, self._registration))
            done.result(ANSWER_SECONDS)
            return
        leader_id, others = node.view.leader_id, self._addresses()
        if leader_id == NOBODY and node.view.leader.epoch > 0:
            if others:  # the log was trimmed past the leader's claim: any of them may be the one
                self._leader.ask(others.values(), self._ask)
            return
        if leader_id == node.node_id or leader_id not in node.view.image.cluster.controllers:
            return  # a later image shows who leads and where: the active controller registers itself
        if leader_id not in others:
            raise NodeError(f"Controller {leader_id}, which leads, has no listener {self._listener}.")
        self._ask(self._leader.at(others[leader_id]))

    def _ask(self, client: NodeClient) -> None:
        answer = client.ask("controller_registration", range(1), self._request)
        if answer.error_code != ErrorCode.NONE:
            raise NodeError(f"{client.address} refuses the registration: {answer.error_code.name}.")

    def _request(self, module: Any) -> Any:
        asked = self._registration
        return module.ControllerRegistrationRequest(
            controller_id=asked.controller_id, incarnation_id=wire_id(asked.incarnation_id), zk_migration_ready=False,
            listeners=end_points_as(module.Listener, asked.listeners),
            features=feature_levels_as(module.Feature, asked.features),
        )  # fmt: skip
