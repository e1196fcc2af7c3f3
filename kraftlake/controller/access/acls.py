"""Creation and deletion of ACLs.

Sources: org.apache.kafka.controller.AclControlManager and kafka.server.AclApis of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.result import MAX_RECORDS_PER_BATCH, ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import (
    CLUSTER_NAME,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    PatternType,
    ResourceType,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import RemoveAccessControlEntryRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.inet_address import AddressRange

UNKNOWN: Final = 0
ANY: Final = 1
WILDCARD: Final = "*"


@attrs.frozen(kw_only=True)
class AclFilter:
    """A filter of ACLs; None, or ANY (1) for a code, matches all.

    The pattern type MATCH (2) matches every ACL that applies to a resource of that name: by the literal name, a prefix
    or the wildcard.
    """

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission_type: int = ANY

    def matches(self, acl: StandardAcl) -> bool:
        """Whether the filter matches an ACL."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
        )

    def _matches_name(self, acl: StandardAcl) -> bool:
        if self.pattern_type not in (ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.LITERAL:
            return acl.resource_name == WILDCARD
        return acl.pattern_type == PatternType.PREFIXED and self.resource_name.startswith(acl.resource_name)


def create_acls(state: ControllerState, acls: Sequence[StandardAcl]) -> ControllerResult[list[ApiError]]:
    """Create the ACLs that do not exist yet; the response has one answer for each, in order."""
    existing = set(state.image.acls.acls.values())
    answers = []
    records = []
    for acl in acls:
        try:
            _check(state, acl)
        except ControllerApiError as refusal:
            answers.append(refusal.api_error)
            continue
        answers.append(ApiError.NONE)
        if acl not in existing:
            existing.add(acl)
            records.append(acl.to_record(_new_id(state)))
    return ControllerResult(records, answers, atomic=True)


def _new_id(state: ControllerState) -> Uuid:
    while (acl_id := state.new_id()) in state.image.acls.acls:
        pass
    return acl_id


def _check(state: ControllerState, acl: StandardAcl) -> None:
    for what, value, names in (
        ("resource type", acl.resource_type, RESOURCE_TYPES),
        ("pattern type", acl.pattern_type, PATTERN_TYPES),
        ("operation", acl.operation, OPERATIONS),
        ("permission type", acl.permission_type, PERMISSIONS),
    ):
        if value not in names or names[value] in ("UNKNOWN", "ANY", "MATCH"):
            raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"An ACL can't have the {what} {value}.")
    if not acl.resource_name:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, "The name of an ACL's resource can't be empty.")
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise ControllerApiError(
            ErrorCode.INVALID_REQUEST, f"The cluster's name in an ACL is {CLUSTER_NAME!r}, not {acl.resource_name!r}."
        )
    if ":" not in acl.principal:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"{acl.principal!r} is no principal, which is TYPE:NAME.")
    if not acl.host:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, "An ACL's host can't be empty; * is every host.")
    if acl.host != WILDCARD and "/" in acl.host:
        _check_range(state, acl.host)


def _check_range(state: ControllerState, host: str) -> None:
    if not state.metadata_version.is_cidr_acl_supported:
        raise ControllerApiError(ErrorCode.UNSUPPORTED_VERSION, "Address ranges in ACLs need metadata.version 4.4-IV1.")
    try:
        AddressRange.parse(host)
    except ValueError as fault:
        raise ControllerApiError(ErrorCode.INVALID_REQUEST, f"{host!r} is no address range: {fault}.") from None


@attrs.frozen
class DeletedAcls:
    """The ACLs that one filter has deleted."""

    error: ApiError
    acls: tuple[StandardAcl, ...] = ()


def delete_acls(state: ControllerState, filters: Sequence[AclFilter]) -> ControllerResult[list[DeletedAcls]]:
    """Delete all ACLs that the filters match; an ACL that two filters match is in both answers.

    Raises ControllerApiError(INVALID_REQUEST) for more than 10,000 ACLs.
    """
    answers = []
    removed: dict[Uuid, None] = {}
    ordered = sorted(state.image.acls.acls.items(), key=lambda item: bytes(item[0]))
    for wanted in filters:
        if UNKNOWN in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission_type):
            answers.append(DeletedAcls(ApiError(ErrorCode.INVALID_REQUEST, "The filter asks for something unknown.")))
            continue
        matched = [(acl_id, acl) for acl_id, acl in ordered if wanted.matches(acl)]
        removed.update((acl_id, None) for acl_id, _ in matched)
        if len(removed) > MAX_RECORDS_PER_BATCH:
            raise ControllerApiError(
                ErrorCode.INVALID_REQUEST, f"More than {MAX_RECORDS_PER_BATCH} ACLs can't be deleted at once."
            )
        answers.append(DeletedAcls(ApiError.NONE, tuple(acl for _, acl in matched)))
    records = [ApiMessageAndVersion(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in removed]
    return ControllerResult(records, answers, atomic=True)
