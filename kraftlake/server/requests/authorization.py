"""Authorization of requests, for all handlers. Source: kafka.server.AuthHelper."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.publisher.authorizer import Action, StandardAuthorizer
from kraftlake.server.requests.dispatcher import Peer

CLUSTER_NAME: Final = "kafka-cluster"
"""The only resource of the type CLUSTER."""


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
