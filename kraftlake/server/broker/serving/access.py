"""Requests about ACLs, client quotas, SCRAM credentials and delegation tokens that a node answers from its image.

Source: kafka.server.KafkaApis.
"""

from __future__ import annotations

from typing import Any

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.credentials import describe_scram_credentials
from kraftlake.publisher.quota_filter import (
    FilterComponent,
    QuotaFilter,
    QuotaFilterError,
    describe_client_quotas,
)
from kraftlake.server.broker.serving.configs import ConfigsContext
from kraftlake.server.broker.serving.forwarding import ForwardingManager
from kraftlake.server.requests.acls import describe_acls
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version
from kraftlake.server.requests.tokens import (
    creation_refused,
    expiry,
    may_ask_for_tokens,
    refusal_of_creation,
    renewers_in,
)


@attrs.frozen
class AccessHandlers:
    """Answers from the node's newest image; `secret_key` is `delegation.token.secret.key`, None without tokens."""

    context: ConfigsContext
    secret_key: str | None = attrs.field(repr=False)

    def acls(self, request: Request) -> Any | None:
        """Answer DescribeAcls."""
        return describe_acls(self.context.authorization, request)

    def client_quotas(self, request: Request) -> Any:
        """Answer DescribeClientQuotas. Raises ControllerApiError for a wrong filter."""
        self.context.authorization.check_cluster(request, AclOperation.DESCRIBE_CONFIGS)
        module, quotas = request.module, self.context.cache.image.client_quotas
        components = tuple(
            FilterComponent(str(one.entity_type), int(one.match_type), one.match) for one in request.body.components
        )
        try:
            found = describe_client_quotas(quotas, QuotaFilter(components, strict=bool(request.body.strict)))
        except QuotaFilterError as fault:
            raise ControllerApiError(fault.error, str(fault)) from None
        entries = tuple(
            module.EntryData(
                entity=tuple(module.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.entries),
                values=tuple(module.ValueData(key=key, value=value) for key, value in sorted(values.items())),
            )
            for entity, values in found.items()
        )
        return response_to(request, error_message=None, entries=entries)

    def scram_credentials(self, request: Request) -> Any:
        """Answer DescribeUserScramCredentials: mechanisms and iterations, no keys."""
        self.context.authorization.check_cluster(request, AclOperation.DESCRIBE)
        module = request.module
        users = [one.name for one in request.body.users or ()]
        results = tuple(
            module.DescribeUserScramCredentialsResult(
                user=one.user, error_code=one.error, error_message=one.error_message,
                credential_infos=tuple(
                    module.CredentialInfo(mechanism=mechanism, iterations=iterations)
                    for mechanism, iterations in one.iterations.items()
                ),
            )
            for one in describe_scram_credentials(self.context.cache.image.scram, users)
        )  # fmt: skip
        return response_to(request, error_message=None, results=results)

    def tokens(self, request: Request) -> Any:
        """Answer DescribeDelegationToken: the tokens of the named owners, of all if none is named by a null.

        A principal sees the tokens that it owns or may renew, and others by an ACL. Source:
        DelegationTokenManager.filterToken.
        """
        peer, module, authorization = request.peer, request.module, self.context.authorization
        if not may_ask_for_tokens(peer):
            return response_to(request, error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, tokens=())
        key = self.secret_key
        if not key:
            return response_to(request, error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, tokens=())
        asked = request.body.owners
        owners = None if asked is None else [f"{one.principal_type}:{one.principal_name}" for one in asked]

        def may_see(token: DelegationTokenData) -> bool:
            if owners is not None and not any(map(token.is_of, owners)):
                return False
            return (
                token.is_of(peer.principal)
                or authorization.allows(request, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
                or authorization.allows(request, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
            )

        tokens = self.context.cache.image.delegation_tokens.tokens.values()
        return response_to(request, tokens=tuple(_described(module, one, key) for one in tokens if may_see(one)))


def _described(module: Any, token: DelegationTokenData, key: str) -> Any:
    kinds: dict[str, Any] = {}
    for field, principal in (("principal", token.owner), ("token_requester_principal", token.requester)):
        kinds[f"{field}_type"], _, kinds[f"{field}_name"] = principal.partition(":")
    renewers = (renewer.partition(":") for renewer in token.renewers)
    return of_version(
        module.DescribedDelegationToken, **kinds, issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiry_timestamp, max_timestamp=token.max_timestamp, token_id=token.token_id,
        hmac=token.hmac(key),
        renewers=tuple(
            module.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ),
    )  # fmt: skip


@attrs.frozen
class TokenForwarding:
    """Checks changes of delegation tokens before the active controller makes them: it does not see the client."""

    context: ConfigsContext
    forwarding: ForwardingManager

    def create(self, request: Request) -> Any | None:
        """Forward CreateDelegationToken, or refuse it."""
        refusal = refusal_of_creation(self.context.authorization, request)
        if refusal is not None:
            return refusal
        if not all(one.startswith("User:") for one in renewers_in(request)):
            return creation_refused(request, ErrorCode.INVALID_PRINCIPAL_TYPE)
        self.forwarding(request)
        return None

    def change(self, request: Request) -> Any | None:
        """Forward RenewDelegationToken or ExpireDelegationToken, or refuse it."""
        if not may_ask_for_tokens(request.peer):
            return expiry(request, error=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        self.forwarding(request)
        return None
