"""What is asked of the authorizer: an operation on a resource, in the words of a command line."""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.image.kafka_names import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kraftlake.publisher.authorizer import Action
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.inet_address import address_text, inet_address
from kraftlake.runtime.words import did_you_mean, in_words

_KINDS: Final = {kind.name.lower().replace("_", "-"): kind for kind in SUPPORTED_OPERATIONS} | {
    "token": ResourceType.DELEGATION_TOKEN
}
KINDS: Final = tuple(kind for kind in _KINDS if kind != "delegation-token")
"""The words for types of resources."""
OPERATIONS: Final = {
    one.name.lower().replace("_", "-"): one for one in sorted({*sum(SUPPORTED_OPERATIONS.values(), start=())})
}
"""The operations by their words."""


@attrs.frozen
class Question:
    """An operation on one resource."""

    operation: AclOperation
    resource_type: ResourceType
    resource_name: str

    @classmethod
    def parse(cls, operation: str, kind: str, name: str | None = None) -> Question:
        """The question in words such as `read`, `topic` and a name; that of the cluster may be left out.

        Raises UsageError for an unknown word, an operation that the type of resource does not have, and no name.
        """
        kind = kind.lower().replace("_", "-")
        if kind not in _KINDS:
            hint = did_you_mean(kind, KINDS, most=1) or f"these are {', '.join(KINDS)}."
            raise UsageError(f"{kind!r} is no type of resource; {hint}")
        word = operation.lower().replace("_", "-")
        resource_type = _KINDS[kind]
        possible = [name for name, one in OPERATIONS.items() if one in SUPPORTED_OPERATIONS[resource_type]]
        if word not in possible:
            what = f"is no operation on a {kind}" if word in OPERATIONS else "is no operation"
            raise UsageError(f"{operation!r} {what}: a {kind} has {in_words(possible)}.")
        if resource_type is ResourceType.CLUSTER:
            if name not in (None, "", CLUSTER_NAME):
                raise UsageError(f"{name!r} is no name of the cluster: to authorizers it is {CLUSTER_NAME}.")
            name = CLUSTER_NAME
        if not name:
            raise UsageError(f"Name the {kind} after `{word} {kind}`.")
        return cls(OPERATIONS[word], resource_type, name)

    @property
    def action(self) -> Action:
        """The action for the authorizer."""
        return Action(
            operation=self.operation, resource_type=self.resource_type, resource_name=self.resource_name
        )  # fmt: skip

    @property
    def resource(self) -> str:
        """The resource in words: `topic orders`."""
        kind = self.resource_type.name.lower().replace("_", " ")
        return "the cluster" if self.resource_type is ResourceType.CLUSTER else f"{kind} {self.resource_name}"

    @property
    def words(self) -> str:
        """The question in words: `read topic orders`."""
        return f"{self.operation.name.lower().replace('_', ' ')} {self.resource}"


def checked_principal(principal: str) -> str:
    """A principal, `Type:name`. Raises UsageError for another text."""
    kind, colon, name = principal.partition(":")
    if not kind or not colon or not name:
        raise UsageError(
            f"{principal!r} is no principal: write Type:name, as in User:{principal.strip(':') or 'admin'}."
        )
    return principal


def compared_host(host: str) -> str:
    """A host as brokers compare it: an address in Java's text form, any other text as it is."""
    address = inet_address(host)
    return host if address is None else address_text(address)


def is_address(host: str) -> bool:
    """Whether a text is an IP address, as all that brokers see of a client is."""
    return inet_address(host) is not None
