"""Authorization of requests, for all handlers. Source: kafka.server.AuthHelper."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.image.kafka_names import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kraftlake.publisher.authorizer import Action, StandardAuthorizer
from kraftlake.server.requests.dispatcher import Peer

NOT_ASKED_FOR: Final = -(2**31)
"""The value of the authorized operations in an answer if the client did not request them."""


@attrs.frozen
class Authorization:
    """Queries the authorizer of a node.

    Without one (no `authorizer.class.name`) every request is allowed, as in Kafka.
    """

    authorizer: StandardAuthorizer | None = None

    def allows(self, peer: Peer, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the peer may perform the operation. Raises AuthorizerNotReadyError before the ACLs are loaded."""
        if self.authorizer is None:
            return True
        action = Action(operation=operation, resource_type=resource_type, resource_name=name)
        return self.authorizer.authorize(peer.principal, peer.host, action).allowed

    def allows_on_cluster(self, peer: Peer, operation: AclOperation) -> bool:
        """Whether the peer may perform the operation on the cluster. Raises as `allows`."""
        return self.allows(peer, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def operations(self, peer: Peer, resource_type: ResourceType, name: str) -> int:
        """The operations on a topic or the cluster that are allowed to the peer, as a bit field.

        Source: AuthHelper.authorizedOperations.
        """
        operations = SUPPORTED_OPERATIONS[resource_type]
        return sum(1 << int(one) for one in operations if self.allows(peer, one, resource_type, name))

    def operations_on_cluster(self, peer: Peer) -> int:
        """The operations on the cluster that are allowed to the peer; none if it may not describe the cluster."""
        if not self.allows_on_cluster(peer, AclOperation.DESCRIBE):
            return 0
        return self.operations(peer, ResourceType.CLUSTER, CLUSTER_NAME)
