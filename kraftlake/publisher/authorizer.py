"""Authorization by access control lists, as in brokers and controllers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.acl_cache import WILDCARD, AclCache
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.errors import KraftlakeError, UsageError
from kraftlake.runtime.inet_address import AddressRange

WILDCARD_PRINCIPAL: Final = "User:*"
SUPER_USER: Final = "super user"
"""The rule by which a super user is allowed everything."""
_IMPLIED_BY: Final[Mapping[int, frozenset[int]]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}),
}
"""The operations whose ALLOW implies the key's operation."""


class AuthorizerNotReadyError(KraftlakeError):
    """The ACLs are not loaded yet: only super users are authorized."""


@attrs.frozen(kw_only=True)
class Action:
    """An operation on a resource; `pattern_type` is LITERAL. Source: org.apache.kafka.server.authorizer.Action."""

    operation: int
    resource_type: int
    resource_name: str
    pattern_type: int = PatternType.LITERAL


@attrs.frozen(kw_only=True)
class Decision:
    """Whether an action is allowed, and the reason: the deciding ACL with its id, or the rule as text."""

    allowed: bool
    rule: str
    acl: StandardAcl | None = None
    acl_id: Uuid | None = None


@attrs.frozen(kw_only=True)
class AuthorizerConfig:
    """The configs `super.users` (`Type:name`) and `allow.everyone.if.no.acl.found`."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> AuthorizerConfig:
        """Read a broker's configuration; raises UsageError for a super user that is not `Type:name`."""
        users = {user.strip() for user in configs.get("super.users", "").split(";")} - {""}
        for user in sorted(users):
            if ":" not in user:
                raise UsageError(
                    f"super.users names {user!r}, which is no principal: write Type:name, as in User:admin."
                )
        everyone = configs.get("allow.everyone.if.no.acl.found", "").strip().lower() == "true"
        return cls(super_users=frozenset(users), allow_everyone_if_no_acl_found=everyone)


class StandardAuthorizer(MetadataPublisher):
    """Decides by the latest ACLs; an update replaces an immutable cache, so that decisions take no lock.

    A super user is always allowed. Otherwise the ACLs of the resource decide: those for its name, for prefixes of its
    name and for the literal name `*` whose principal (or `User:*`), host (or `*`, or a range like 10.0.0.0/8) and
    operation match. DENY takes precedence over ALLOW. Allowing Read, Write, Delete or Alter allows Describe, allowing
    AlterConfigs allows DescribeConfigs; denying implies nothing. A resource without ACLs is denied, unless
    `allow.everyone.if.no.acl.found` is set. Source: org.apache.kafka.metadata.authorizer.StandardAuthorizer.
    """

    name = "AclPublisher"
    """Kafka's name of the publisher."""

    def __init__(self, config: AuthorizerConfig | None = None) -> None:
        self._config = config or AuthorizerConfig()
        self._acls = AclCache()
        self.ready = False
        """Whether the ACLs are loaded."""

    @property
    def acls(self) -> AclCache:
        """The current ACLs."""
        return self._acls

    @property
    def super_users(self) -> frozenset[str]:
        """The principals that are allowed everything."""
        return self._config.super_users

    @classmethod
    def of(cls, acls: Iterable[tuple[Uuid, StandardAcl]], config: AuthorizerConfig | None = None) -> StandardAuthorizer:
        """Return an authorizer with some ACLs by their ids."""
        authorizer = cls(config)
        authorizer._acls = AclCache.of(dict(acls))
        authorizer.ready = True
        return authorizer

    def among(self, acls: Iterable[tuple[Uuid, StandardAcl]]) -> StandardAuthorizer:
        """Return an authorizer of the same settings that knows only these ACLs."""
        return StandardAuthorizer.of(acls, self._config)

    def authorize(self, principal: str, host: str, action: Action) -> Decision:
        """Decide whether `principal` (`Type:name`) is allowed the action from `host`, an IP address.

        Where several ACLs decide, the decision has the one that Kafka names in the log of its authorizer. Raises
        UsageError if the resource's pattern type is not LITERAL, AuthorizerNotReadyError before the ACLs are loaded.
        """
        _check_literal(action)
        if principal in self._config.super_users:
            return Decision(allowed=True, rule=SUPER_USER)
        if not self.ready:
            raise AuthorizerNotReadyError("The ACLs are not loaded yet; try again.")
        allowing, found = None, False
        for at_place in self._acls.matching(action.resource_type, action.resource_name):
            found = True
            deciding = [item for item in at_place.items() if _concerns(item[1], principal, host, action.operation)]
            denying = [item for item in deciding if item[1].permission_type != AclPermissionType.ALLOW]
            if denying:
                acl_id, acl = min(denying, key=_order)
                return Decision(allowed=False, rule="ACL", acl=acl, acl_id=acl_id)
            if deciding:
                allowing = max(deciding, key=_order)
        if allowing is not None:
            return Decision(allowed=True, rule="ACL", acl=allowing[1], acl_id=allowing[0])
        if found:
            return Decision(allowed=False, rule="no ACL of the resource allows it")
        return Decision(allowed=self._config.allow_everyone_if_no_acl_found, rule="the resource has no ACL")

    def acls_of(self, action: Action) -> Iterator[tuple[Uuid, StandardAcl]]:
        """Yield the ACLs of the action's resource with their ids, in the order in which Kafka searches them."""
        _check_literal(action)
        for at_place in self._acls.matching(action.resource_type, action.resource_name):
            yield from sorted(at_place.items(), key=_order)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Apply the changed ACLs; after a snapshot, replace all."""
        if delta.acls_delta is None:
            return
        if isinstance(manifest, SnapshotManifest):
            self._acls = AclCache.of(new_image.acls.acls)
        else:
            acls = self._acls
            for acl_id, acl in delta.acls_delta.changes.items():
                acls = acls.without(acl_id) if acl is None else acls.with_acl(acl_id, acl)
            self._acls = acls
        self.ready = True


def _check_literal(action: Action) -> None:
    if action.pattern_type != PatternType.LITERAL:
        raise UsageError(f"Only one literal resource can be asked for, not {action.resource_name!r} as a pattern.")


def _order(item: tuple[Uuid, StandardAcl]) -> tuple[int, bytes, bytes, int, bytes]:
    """Kafka's order of the ACLs of one place. Source: org.apache.kafka.metadata.authorizer.StandardAcl.compareTo."""
    acl_id, acl = item
    principal, host = (text.encode("utf-16-be", "surrogatepass") for text in (acl.principal, acl.host))
    return acl.operation, principal, host, acl.permission_type, bytes(acl_id)


def _concerns(acl: StandardAcl, principal: str, host: str, operation: int) -> bool:
    """Whether an ACL of the resource matches the principal, host and operation."""
    return is_of_principal(acl, principal) and is_of_host(acl, host) and is_of_operation(acl, operation)


def is_of_principal(acl: StandardAcl, principal: str) -> bool:
    """Whether an ACL is about a principal, or about all."""
    return acl.principal in (principal, WILDCARD_PRINCIPAL)


def is_of_host(acl: StandardAcl, host: str) -> bool:
    """Whether an ACL is about a host: about all, this text, or a range that the address is in."""
    return acl.host in (WILDCARD, host) or is_in_range(host, acl.host)


def is_of_operation(acl: StandardAcl, operation: int) -> bool:
    """Whether an ACL is about an operation, or implies it."""
    if acl.operation == AclOperation.ALL:
        return True
    if acl.permission_type == AclPermissionType.ALLOW and operation in _IMPLIED_BY:
        return acl.operation in _IMPLIED_BY[operation]
    return acl.operation == operation


def is_in_range(host: str, pattern: str) -> bool:
    """Whether an address is in a range like 10.0.0.0/8 or fe80::/10; False for an invalid range or address.

    Source: org.apache.kafka.server.authorizer.internals.CidrUtils.
    """
    range_ = _range(pattern)
    return range_ is not None and host in range_


@lru_cache(maxsize=4_096)
def _range(pattern: str) -> AddressRange | None:
    try:
        return AddressRange.parse(pattern)
    except ValueError:
        return None
