"""The brokers that answer on behalf of a broker that serves no clients."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from kraftlake.image.acls_image import AclsImage
from kraftlake.image.endpoint import VersionRange
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.address import Address

SERVES_NOBODY: Final = "kraftlake.serves.nobody"
"""A feature in the registration that marks brokers that serve no clients."""
NO_LEVELS: Final = VersionRange(min=0, max=0)
_PLAINTEXT: Final = 0
_ANY_HOST: Final = "*"


def listeners_of_others(image: MetadataImage, broker_id: int) -> set[str]:
    """The names of all other brokers' listeners."""
    return {name for broker in image.cluster.brokers.values() if broker.id != broker_id for name in broker.listeners}


class ServingBrokers:
    """The brokers that serve clients, by the newest image: those with a PLAINTEXT listener of the same name.

    A serving broker sees this machine as the client, so none is used while an ACL or a quota is for a host or an IP
    address: the rule would be bypassed.
    """

    def __init__(self, broker_id: int, listener: str, image: Callable[[], MetadataImage]) -> None:
        self._broker_id = broker_id
        self._listener = listener
        self._image = image
        self._acls: AclsImage | None = None
        self._has_acls_of_hosts = False

    def addresses(self) -> list[Address] | None:
        """The addresses of the other brokers, in random order; None where none may be queried."""
        image = self._image()
        if self._distinguishes_hosts(image):
            return None
        found = [
            Address(endpoint.host, endpoint.port)
            for broker in image.cluster.brokers.values()
            if not broker.fenced and broker.id != self._broker_id and SERVES_NOBODY not in broker.supported_features
            if (endpoint := broker.listeners.get(self._listener)) and endpoint.security_protocol == _PLAINTEXT
        ]
        random.shuffle(found)
        return found

    def _distinguishes_hosts(self, image: MetadataImage) -> bool:
        if image.acls is not self._acls:
            self._acls = image.acls
            self._has_acls_of_hosts = any(acl.host != _ANY_HOST for acl in image.acls.acls.values())
        return self._has_acls_of_hosts or any("ip" in dict(entity.entries) for entity in image.client_quotas.entities)
