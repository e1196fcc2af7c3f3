"""Responses to requests: of the request's version, at once or later.

Source: kafka.server.RequestHandlerHelper.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.requests.dispatcher import Handler, Request
from kraftlake.server.requests.messages import AT_ONCE, of_version, response_type

T = TypeVar("T")
R = TypeVar("R")


def response_to(request: Request, **values: Any) -> Any:
    """Return a response of the request's version, with the values that this version has; nothing is throttled."""
    kind = response_type(request.name, request.version)
    return of_version(kind, **{"throttle_time": AT_ONCE, "error_code": ErrorCode.NONE, **values})


def _too_late(request: Request) -> Any:
    """Refuse a login within a session, or on a listener without logins; a login anew does not come here."""
    return response_to(
        request, error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=(), auth_bytes=b"",
        error_message="There is no login to be made on this connection now.",
    )  # fmt: skip


SASL_HANDLERS: Final = {name: Handler(begin=_too_late) for name in ("sasl_handshake", "sasl_authenticate")}
"""The handlers of requests for a login where there is none to be made. Source: KafkaApis.handleSaslHandshakeRequest."""


def then(future: Future[T], make: Callable[[T], R], *, refused: Callable[[], R] | None = None) -> Future[R]:
    """Return a future of the result of `make` for the future's result; it has the error of either.

    If the future has ControllerApiError, `refused` gives the result instead, where there is one.
    """
    made: Future[R] = Future()

    def done(future: Future[T]) -> None:
        try:
            is_refused = refused is not None and isinstance(future.exception(), ControllerApiError)
            result = refused() if refused is not None and is_refused else make(future.result())
        except BaseException as fault:
            made.set_exception(fault)
        else:
            made.set_result(result)

    future.add_done_callback(done)
    return made
