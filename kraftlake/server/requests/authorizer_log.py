"""The lines of the authorizer's log, in Kafka's words: who was allowed or denied what, from where, for which request.

Source: org.apache.kafka.metadata.authorizer.StandardAuthorizerData (buildAuditMessage, logAuditMessage), KIP-4.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType, ResourceType
from kraftlake.publisher.authorizer import SUPER_USER, Action, Decision
from kraftlake.runtime.log import get_logger

LOGGER: Final = "kafka.authorizer.logger"
"""The name of Kafka's logger, which each line has as its `logger`."""


class AuthorizerLog:
    """Logs decisions by Kafka's levels: allowed ones at DEBUG, denied ones at INFO."""

    def __init__(self) -> None:
        self._log: Any = get_logger(LOGGER).bind(logger=LOGGER)
        self.has_allowed: bool = self._log.is_enabled_for(logging.DEBUG)
        """Whether allowed operations are logged; if not, no line is made for them."""

    def log_decision(
        self, decision: Decision, action: Action, *, principal: str, host: str, api: str, count: int
    ) -> None:
        """Log a decision on `count` references to the resource in a request of the API `api` (`create_topics`)."""
        log = self._log.debug if decision.allowed else self._log.info
        log(
            f"Principal = {principal} is {'Allowed' if decision.allowed else 'Denied'} "
            f"operation = {AclOperation(action.operation).name} from host = {host} on resource = "
            f"{_camel(ResourceType(action.resource_type).name)}:LITERAL:{action.resource_name} for request = "
            f"{_camel(api)} with resourceRefCount = {count} based on rule {_rule(decision)}"
        )


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _rule(decision: Decision) -> str:
    if decision.acl is not None:
        return f"MatchingAcl(acl={_acl(decision.acl)})"
    if decision.rule == SUPER_USER:
        return "SuperUser"
    return "DefaultAllow" if decision.allowed else "DefaultDeny"


def _acl(acl: StandardAcl) -> str:
    return (
        f"StandardAcl[resourceType={ResourceType(acl.resource_type).name}, resourceName={acl.resource_name}, "
        f"patternType={PatternType(acl.pattern_type).name}, principal={acl.principal}, host={acl.host}, "
        f"operation={AclOperation(acl.operation).name}, permissionType={AclPermissionType(acl.permission_type).name}]"
    )
