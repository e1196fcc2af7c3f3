"""Creation, renewal and expiration of delegation tokens. Source: DelegationTokenControlManager of Kafka 4.4."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.delegation_token_image import DelegationTokenData
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import RemoveDelegationTokenRecord
from kraftlake.records.serde import ApiMessageAndVersion

_MAX_SWEPT = 1_000
_LARGEST_LONG = (1 << 63) - 1


@attrs.frozen(kw_only=True)
class CreatedToken:
    """A token and its HMAC, the password, which is not in the log."""

    token: DelegationTokenData
    hmac: bytes = attrs.field(repr=False)


def create_delegation_token(
    state: ControllerState,
    *,
    requester: str,
    owner: str | None = None,
    renewers: Sequence[str] = (),
    max_lifetime_ms: int = -1,
) -> ControllerResult[CreatedToken]:
    """Create a token for `owner` (by default the requester); principals are TYPE:NAME, renewers are users.

    Raises ControllerApiError: DELEGATION_TOKEN_AUTH_DISABLED without a secret key, INVALID_PRINCIPAL_TYPE.
    """
    key = _secret_key(state)
    for renewer in renewers:
        if not renewer.startswith("User:"):
            raise ControllerApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, f"The renewer {renewer!r} is no user.")
    config = state.config
    lifetime = config.delegation_token_max_lifetime_ms
    if max_lifetime_ms > 0:
        lifetime = min(lifetime, max_lifetime_ms)
    max_timestamp = min(_LARGEST_LONG, state.now_ms + lifetime)
    token_id = str(state.new_id())
    token = DelegationTokenData(
        token_id=token_id,
        owner=owner or requester,
        requester=requester,
        renewers=tuple(renewers),
        issue_timestamp=state.now_ms,
        max_timestamp=max_timestamp,
        expiry_timestamp=min(max_timestamp, state.now_ms + config.delegation_token_expiry_time_ms),
    )
    return ControllerResult((token.to_record(),), CreatedToken(token=token, hmac=token.hmac(key)), atomic=True)


def renew_delegation_token(
    state: ControllerState, *, principal: str, token_hmac: bytes, renew_period_ms: int = -1
) -> ControllerResult[int]:
    """Extend a token's lifetime; the response is its new expiry time in epoch ms."""
    token = _token(state, principal, token_hmac, allow_expired=False, check_first=False)
    period = state.config.delegation_token_expiry_time_ms
    if renew_period_ms > 0:
        period = min(period, renew_period_ms)
    return _with_expiry(token, min(token.max_timestamp, state.now_ms + period))


def expire_delegation_token(
    state: ControllerState, *, principal: str, token_hmac: bytes, expiry_time_period_ms: int = -1
) -> ControllerResult[int]:
    """Set a token's expiry time, or remove it if the period is negative; the response is the time in epoch ms."""
    token = _token(state, principal, token_hmac, allow_expired=expiry_time_period_ms < 0, check_first=True)
    if expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.token_id)
        return ControllerResult((ApiMessageAndVersion(removal, 0),), state.now_ms, atomic=True)
    wanted = min(_LARGEST_LONG, state.now_ms + expiry_time_period_ms)
    return _with_expiry(token, min(token.max_timestamp, wanted))


def _with_expiry(token: DelegationTokenData, expiry: int) -> ControllerResult[int]:
    return ControllerResult((attrs.evolve(token, expiry_timestamp=expiry).to_record(),), expiry, atomic=True)


def sweep_expired_delegation_tokens(state: ControllerState) -> ControllerResult[bool]:
    """Remove expired tokens, a limited number at a time; the response is True if more are left."""
    tokens = sorted(state.image.delegation_tokens.tokens.items())
    expired = [token_id for token_id, token in tokens if _is_expired(state, token)]
    records = [
        ApiMessageAndVersion(RemoveDelegationTokenRecord(token_id=token_id), 0) for token_id in expired[:_MAX_SWEPT]
    ]
    return ControllerResult(records, len(records) >= _MAX_SWEPT)


def _secret_key(state: ControllerState) -> str:
    key = state.config.delegation_token_secret_key
    if key is None:
        raise ControllerApiError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "There are no delegation tokens without delegation.token.secret.key.",
        )
    if not state.metadata_version.is_delegation_token_supported:
        raise ControllerApiError(ErrorCode.UNSUPPORTED_VERSION, "Delegation tokens need metadata.version 3.6-IV2.")
    return key


def _is_expired(state: ControllerState, token: DelegationTokenData) -> bool:
    return token.last_timestamp < state.now_ms


def _token(
    state: ControllerState, principal: str, token_hmac: bytes, *, allow_expired: bool, check_first: bool
) -> DelegationTokenData:
    """Return the token with that HMAC; with `check_first` the principal is checked before the expiry time."""
    key = _secret_key(state)
    tokens = state.image.delegation_tokens.tokens.values()
    found = [one for one in tokens if hmac.compare_digest(one.hmac(key), token_hmac)]
    if not found:
        raise ControllerApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "No delegation token has that HMAC.")
    (token,) = found
    stranger = not token.is_of(principal)
    expired = not allow_expired and _is_expired(state, token)
    if stranger and (check_first or not expired):
        raise ControllerApiError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, f"{principal} is neither the token's owner nor a renewer of it."
        )
    if expired:
        raise ControllerApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "The delegation token has expired.")
    return token
