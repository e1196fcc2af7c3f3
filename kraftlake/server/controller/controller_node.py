"""The parts of a controller that its request handlers use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from typing import TypeAlias, TypeVar

import attrs

from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.controller.state import Command
from kraftlake.image.endpoint import Endpoint
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.address import Address
from kraftlake.replay.loader.manifest import LeaderAndEpoch
from kraftlake.server.controller.quorum_view import QuorumView
from kraftlake.server.controller.replica_progress import ReplicaProgress
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Answering, Request
from kraftlake.server.requests.handlers import then

T = TypeVar("T")
Handlers: TypeAlias = "Mapping[str, Callable[[ControllerNode, Request], Answering]]"
"""The functions that begin to answer requests, by API."""
R = TypeVar("R")


@attrs.frozen(kw_only=True, eq=False)
class ControllerNode:
    """The parts of a controller's process that answer requests; `listeners` are the node's own, by name."""

    node_id: int
    cluster_id: str
    controller: QuorumController
    view: QuorumView
    authorization: Authorization
    progress: ReplicaProgress
    listeners: Mapping[str, Endpoint]
    settings: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    delete_topic_enable: bool = True
    heartbeat_timeout_ms: float = 1_000

    @property
    def broker_id(self) -> int:
        """The id under which the node's own configs are described and altered."""
        return self.node_id

    @property
    def static_settings(self) -> Mapping[str, str]:
        """The settings as in a property file, including those that identify the controller."""
        id_ = str(self.node_id)
        return {
            **self.settings, "broker.id": id_, "node.id": id_, "process.roles": "controller",
            "controller.listener.names": ",".join(self.listeners),
            "listeners": ",".join(f"{name}://{Address(one.host, one.port)}" for name, one in self.listeners.items()),
        }  # fmt: skip

    @property
    def cache(self) -> QuorumView:
        """The newest state of the cluster."""
        return self.view

    @property
    def leader(self) -> LeaderAndEpoch:
        """The leader of the newest epoch known to this node, by its own claim or by the log.

        A node may consider itself the active controller of an epoch long after the log has shown it a later one.
        """
        epoch, known = self.controller.epoch, self.view.leader
        return LeaderAndEpoch(leader_id=self.node_id, epoch=epoch) if epoch > known.epoch else known

    def check_cluster(self, request: Request, operation: AclOperation) -> None:
        """Refuse a request (CLUSTER_AUTHORIZATION_FAILED) if its peer may not perform the operation on the cluster."""
        self.authorization.check_cluster(request, operation)

    def run(self, command: Command[T], make: Callable[[T], R], *, timeout: timedelta | None = None) -> Future[R]:
        """Return the response that `make` makes of a command's result, once its records are durable.

        The future has ControllerApiError, also NOT_CONTROLLER and, after `timeout`, REQUEST_TIMED_OUT.
        """
        timeout_ms = None if timeout is None else timeout.total_seconds() * 1000
        return then(self.controller.submit(command, timeout_ms=timeout_ms), make)
