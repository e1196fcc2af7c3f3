"""ACLs and filters of ACLs in requests, and the answer to DescribeAcls.

Source: kafka.server.AclApis and, in org.apache.kafka.common.requests, CreateAclsRequest, DeleteAclsRequest and
DescribeAclsRequest.
"""

from __future__ import annotations

from typing import Any, Final

from kraftlake.controller.access.acls import UNKNOWN, AclFilter
from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    AclOperation,
    known_number,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.authorizer import StandardAuthorizer
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to

_CODES: Final = (
    "resource_type", "resource_pattern_type", "resource_type_filter", "pattern_type_filter", "operation",
    "permission_type",
)  # fmt: skip


def is_unreadable(asked: Any) -> bool:
    """Whether a creation or a filter has the code UNKNOWN, for which Kafka closes the connection."""
    return UNKNOWN in [getattr(asked, name) for name in _CODES if hasattr(asked, name)]


def acl_in(creation: Any) -> StandardAcl:
    """The ACL that a request creates; codes that Kafka does not know become UNKNOWN."""
    return StandardAcl(
        resource_type=known_number(RESOURCE_TYPES, creation.resource_type), resource_name=creation.resource_name,
        pattern_type=known_number(PATTERN_TYPES, creation.resource_pattern_type), principal=creation.principal,
        host=creation.host, operation=known_number(OPERATIONS, creation.operation),
        permission_type=known_number(PERMISSIONS, creation.permission_type),
    )  # fmt: skip


def filter_in(asked: Any) -> AclFilter:
    """The filter of a request that deletes or describes ACLs; codes that Kafka does not know become UNKNOWN."""
    return AclFilter(
        resource_type=known_number(RESOURCE_TYPES, asked.resource_type_filter),
        resource_name=asked.resource_name_filter,
        pattern_type=known_number(PATTERN_TYPES, asked.pattern_type_filter), principal=asked.principal_filter,
        host=asked.host_filter, operation=known_number(OPERATIONS, asked.operation),
        permission_type=known_number(PERMISSIONS, asked.permission_type),
    )  # fmt: skip


def authorizer_of(authorization: Authorization) -> StandardAuthorizer:
    """The authorizer whose ACLs are meant. Raises ControllerApiError(SECURITY_DISABLED) without one."""
    if authorization.authorizer is None:
        reason = "The node has no authorizer: set authorizer.class.name."
        raise ControllerApiError(ErrorCode.SECURITY_DISABLED, reason)
    return authorization.authorizer


def describe_acls(authorization: Authorization, request: Request) -> Any | None:
    """Answer DescribeAcls with the ACLs that the node's authorizer knows; an unreadable filter closes the connection.

    Raises ControllerApiError if the peer may not describe the cluster, and as `authorizer_of`.
    """
    asked, module = request.body, request.module
    if is_unreadable(asked):
        request.close()
        return None
    authorization.check_cluster(request, AclOperation.DESCRIBE)
    wanted = filter_in(asked)
    found: dict[tuple[int, str, int], set[tuple[str, str, int, int]]] = {}
    for acl in authorizer_of(authorization).acls.by_id.values():
        if wanted.matches(acl):
            of_resource = found.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), set())
            of_resource.add((acl.principal, acl.host, acl.operation, acl.permission_type))
    resources = tuple(
        module.DescribeAclsResource(
            resource_type=kind, resource_name=name, pattern_type=pattern,
            acls=tuple(
                module.AclDescription(principal=principal, host=host, operation=operation, permission_type=permission)
                for principal, host, operation, permission in sorted(acls)
            ),
        )
        for (kind, name, pattern), acls in found.items()
    )  # fmt: skip
    return response_to(request, error_message=None, resources=resources)
