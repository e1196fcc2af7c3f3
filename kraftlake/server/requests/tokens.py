"""Requests about delegation tokens: who may send them, and their answers (KIP-48, KIP-373).

Source: kafka.server.KafkaApis and ControllerApis (allowTokenRequests).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import ANONYMOUS, Peer, Request
from kraftlake.server.requests.handlers import response_to

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_LAST_MS: Final = 253_402_300_799_000
"""The end of the year 9999, the last time that kio can write."""
_NO_TIME: Final = -1
SECRET_KEY: Final = "delegation.token.secret.key"  # noqa: S105 - a setting's name


def may_ask_for_tokens(peer: Peer) -> bool:
    """Whether a peer may ask for tokens: not by a token, and not anonymously; a broker has checked what it forwards."""
    if peer.token_authenticated:
        return False
    is_unknown = peer.security_protocol == SecurityProtocol.PLAINTEXT or (
        peer.security_protocol == SecurityProtocol.SSL and peer.principal == ANONYMOUS
    )
    return peer.forwarded or not is_unknown


def owner_in(request: Request) -> str:
    """The principal for which a CreateDelegationToken request wants a token: by default the requester."""
    name = getattr(request.body, "owner_principal_name", None)
    return f"{request.body.owner_principal_type}:{name}" if name else request.peer.principal


def renewers_in(request: Request) -> tuple[str, ...]:
    """The principals that may renew the token of a CreateDelegationToken request."""
    return tuple(f"{one.principal_type}:{one.principal_name}" for one in request.body.renewers)


def refusal_of_creation(authorization: Authorization, request: Request) -> Any | None:
    """The answer to a CreateDelegationToken request that its peer may not send; None if the peer may."""
    peer, owner = request.peer, owner_in(request)
    if not may_ask_for_tokens(peer):
        return creation_refused(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if owner != peer.principal and not authorization.allows(
        request, AclOperation.CREATE_TOKENS, ResourceType.USER, owner
    ):
        return creation_refused(request, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    return None


def creation_refused(request: Request, error: ErrorCode, times: int = _NO_TIME) -> Any:
    """The answer to a CreateDelegationToken request without a token; the active controller has 0 for its times."""
    nothing = moment(times)
    return _creation(
        request, owner_in(request), request.peer.principal, error_code=error, issue_timestamp=nothing,
        expiry_timestamp=nothing, max_timestamp=nothing, token_id="", hmac=b"",
    )  # fmt: skip


def created(request: Request, token: DelegationTokenData, hmac: bytes) -> Any:
    """The answer to a CreateDelegationToken request with the token and its HMAC."""
    return _creation(
        request, token.owner, token.requester, issue_timestamp=moment(token.issue_timestamp),
        expiry_timestamp=moment(token.expiry_timestamp), max_timestamp=moment(token.max_timestamp),
        token_id=token.token_id, hmac=hmac,
    )  # fmt: skip


def _creation(request: Request, owner: str, requester: str, **values: Any) -> Any:
    (kind, _, name), (requester_kind, _, requester_name) = owner.partition(":"), requester.partition(":")
    return response_to(
        request, principal_type=kind, principal_name=name, token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester_name, **values,
    )  # fmt: skip


def expiry(request: Request, ms: int = _NO_TIME, error: ErrorCode = ErrorCode.NONE) -> Any:
    """The answer to a RenewDelegationToken or ExpireDelegationToken request: the token's expiry time in epoch ms."""
    return response_to(request, error_code=error, expiry_timestamp=moment(ms))


def moment(ms: int) -> datetime:
    """A time in epoch ms, as kio has it."""
    return _EPOCH + timedelta(milliseconds=min(ms, _LAST_MS))
