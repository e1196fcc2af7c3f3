"""Handlers of changes of delegation tokens. Source: kafka.server.ControllerApis."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Final

from kraftlake.controller.access.delegation_tokens import (
    CreatedToken,
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import Command, ControllerState
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.requests.dispatcher import Answering, Request
from kraftlake.server.requests.tokens import (
    created,
    creation_refused,
    expiry,
    may_ask_for_tokens,
    owner_in,
    refusal_of_creation,
    renewers_in,
)


def _or_error(command: Command[Any]) -> Command[Any]:
    """Return a command whose response is the error code if it is refused."""

    def run(state: ControllerState) -> ControllerResult[Any]:
        try:
            return command(state)
        except ControllerApiError as refusal:
            return ControllerResult((), refusal.error)

    return run


def _create(node: ControllerNode, request: Request) -> Answering:
    refusal = refusal_of_creation(node.authorization, request)
    if refusal is not None:
        return refusal
    requester, owner, renewers = request.peer.principal, owner_in(request), renewers_in(request)
    lifetime_ms = _ms(request.body.max_lifetime)

    def create(state: ControllerState) -> ControllerResult[CreatedToken]:
        return create_delegation_token(
            state, requester=requester, owner=owner, renewers=renewers, max_lifetime_ms=lifetime_ms
        )

    def answer(made: CreatedToken | ErrorCode) -> Any:
        if isinstance(made, ErrorCode):
            return creation_refused(request, made, 0)
        return created(request, made.token, made.hmac)

    return node.run(_or_error(create), answer)


def _renew(node: ControllerNode, request: Request) -> Answering:
    principal, hmac, period_ms = request.peer.principal, bytes(request.body.hmac), _ms(request.body.renew_period)
    return _with_expiry(
        node,
        request,
        lambda state: renew_delegation_token(state, principal=principal, token_hmac=hmac, renew_period_ms=period_ms),
    )


def _expire(node: ControllerNode, request: Request) -> Answering:
    principal, hmac = request.peer.principal, bytes(request.body.hmac)
    period_ms = _ms(request.body.expiry_time_period)
    return _with_expiry(
        node,
        request,
        lambda state: expire_delegation_token(
            state, principal=principal, token_hmac=hmac, expiry_time_period_ms=period_ms
        ),
    )


def _with_expiry(
    node: ControllerNode, request: Request, command: Callable[[ControllerState], ControllerResult[int]]
) -> Future[Any] | Any:
    """Run a command whose response is a token's new expiry time."""
    if not may_ask_for_tokens(request.peer):
        return expiry(request, error=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)

    def answer(time: int | ErrorCode) -> Any:
        return expiry(request, 0, time) if isinstance(time, ErrorCode) else expiry(request, time)

    return node.run(_or_error(command), answer)


def _ms(period: timedelta) -> int:
    return period // timedelta(milliseconds=1)


TOKEN_HANDLERS: Final[Handlers] = {
    "create_delegation_token": _create,
    "renew_delegation_token": _renew,
    "expire_delegation_token": _expire,
}
"""The handlers of changes of delegation tokens."""
