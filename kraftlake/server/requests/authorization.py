"""Authorization of requests, for all handlers. Source: kafka.server.AuthHelper."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.kafka_names import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.authorizer import Action, StandardAuthorizer
from kraftlake.server.requests.authorizer_log import AuthorizerLog
from kraftlake.server.requests.dispatcher import Request

NOT_ASKED_FOR: Final = -(2**31)
"""The value of the authorized operations in an answer if the client did not request them."""


@attrs.frozen
class Authorization:
    """Queries the authorizer of a node, and logs its decisions as Kafka does.

    Without one (no `authorizer.class.name`) every request is allowed, as in Kafka.
    """

    authorizer: StandardAuthorizer | None = None
    _log: AuthorizerLog = attrs.field(factory=AuthorizerLog, eq=False, repr=False)

    def allows(
        self,
        request: Request,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        count: int = 1,
        log_allowed: bool = True,
        log_denied: bool = True,
    ) -> bool:
        """Whether the sender of the request may perform the operation.

        `count` is the number of times that the request names the resource. A decision is not logged where it grants
        nothing (`log_allowed`), or the request does not ask for this very resource (`log_denied`). Raises
        AuthorizerNotReadyError before the ACLs are loaded.
        """
        if self.authorizer is None:
            return True
        action = Action(operation=operation, resource_type=resource_type, resource_name=name)
        peer = request.peer
        decision = self.authorizer.authorize(peer.principal, peer.host, action)
        if (log_allowed and self._log.has_allowed) if decision.allowed else log_denied:
            self._log.log_decision(
                decision, action, principal=peer.principal, host=peer.host, api=request.name, count=count
            )  # fmt: skip
        return decision.allowed

    def allows_on_cluster(self, request: Request, operation: AclOperation, *, log_denied: bool = True) -> bool:
        """Whether the sender may perform the operation on the cluster. Raises and logs as `allows`."""
        return self.allows(request, operation, ResourceType.CLUSTER, CLUSTER_NAME, log_denied=log_denied)

    def check_cluster(self, request: Request, operation: AclOperation) -> None:
        """Raise ControllerApiError(CLUSTER_AUTHORIZATION_FAILED) if the sender may not do that to the cluster."""
        if not self.allows_on_cluster(request, operation):
            raise ControllerApiError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"{request.peer.principal} is not allowed {operation.name} on the cluster.",
            )

    def operations(self, request: Request, resource_type: ResourceType, name: str) -> int:
        """The operations on a topic or the cluster that are allowed to the sender, as a bit field; none is logged.

        Source: AuthHelper.authorizedOperations.
        """
        operations = SUPPORTED_OPERATIONS[resource_type]
        return sum(
            1 << int(one)
            for one in operations
            if self.allows(request, one, resource_type, name, log_allowed=False, log_denied=False)
        )

    def operations_on_cluster(self, request: Request) -> int:
        """The operations on the cluster that are allowed to the sender; none if it may not describe the cluster."""
        if not self.allows_on_cluster(request, AclOperation.DESCRIBE):
            return 0
        return self.operations(request, ResourceType.CLUSTER, CLUSTER_NAME)
