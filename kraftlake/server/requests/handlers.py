"""Answers to requests: a response at once or later, or the API's error response.

Source: kafka.server.RequestHandlerHelper, org.apache.kafka.common.requests.AbstractRequest.getErrorResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import attrs
from kio.static.constants import EntityType

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.authorizer import AuthorizerNotReadyError
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.server.requests.dispatcher import Api, Request
from kraftlake.server.requests.messages import AT_ONCE, entity, of_version, versions_of

T = TypeVar("T")
R = TypeVar("R")
Answering: TypeAlias = Any | Future[Any]
"""A response as kio declares it, a future of one, or None where the handler answers by the request's own methods."""
Tell: TypeAlias = Callable[[str, BaseException], None]


_WITHOUT_REASON: Final = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT})
"""The errors without a message for the client, as in Kafka."""


class RefusedError(KraftlakeError):
    """Reports a request that is refused as a whole, with an error that no command has.

    A None message means Kafka's own text.
    """

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{error.name}: {message}" if message else error.name)
        self.error = error
        self.message = message


class NotReadyError(KraftlakeError):
    """Reports a node that can't answer yet: the connection is closed, as if the node had not started."""


def response_to(request: Request, **values: Any) -> Any:
    """Return a response of the request's version, with the values that this version has; nothing is throttled."""
    kind = entity(request.name, request.version, EntityType.response)
    return of_version(kind, throttle_time=AT_ONCE, **values)


@attrs.frozen(kw_only=True)
class Handler:
    """The handler of an API's requests, and the versions that are served.

    `begin` raises ControllerApiError or RefusedError, or its future has it, if the request is refused as a whole.
    """

    begin: Callable[[Request], Answering]
    versions: range | None = None


def apis_of(handlers: Mapping[str, Handler], tell: Tell) -> dict[str, Api]:
    """The APIs of a `Dispatcher`; handlers without versions serve all versions of kio. `tell` gets internal errors."""
    return {
        name: Api(versions=handler.versions or versions_of(name), handle=partial(_handle, handler, tell))
        for name, handler in handlers.items()
    }


def then(future: Future[T], make: Callable[[T], R]) -> Future[R]:
    """Return a future of the result of `make` for the future's result; it has the error of either."""
    made: Future[R] = Future()

    def done(future: Future[T]) -> None:
        try:
            result = make(future.result())
        except BaseException as fault:
            made.set_exception(fault)
        else:
            made.set_result(result)

    future.add_done_callback(done)
    return made


def _handle(handler: Handler, tell: Tell, request: Request) -> None:
    try:
        answer = handler.begin(request)
    except Exception as fault:
        _refuse(tell, request, fault)
        return
    if isinstance(answer, Future):
        answer.add_done_callback(partial(_done, tell, request))
    elif answer is not None:
        request.answer(answer)


def _done(tell: Tell, request: Request, future: Future[Any]) -> None:
    fault = future.exception()
    try:
        if fault is None:
            request.answer(future.result())
        else:
            _refuse(tell, request, fault)
    except Exception as failed:
        tell("request_failed", failed)
        request.close()


def _refuse(tell: Tell, request: Request, fault: BaseException) -> None:
    match fault:
        case AuthorizerNotReadyError() | NotReadyError():
            request.close()
        case RefusedError():
            request.fail(fault.error, fault.message)
        case ControllerApiError():
            message = None if fault.error in _WITHOUT_REASON else fault.message
            request.fail(fault.error, message)
        case _:
            tell("request_failed", fault)
            request.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
