"""Dispatch of a node's requests to their handlers. Pure: frames in, frames out; a listener has the sockets.

Source: kafka.server.KafkaApis, kafka.server.ControllerApis, org.apache.kafka.common.requests.ApiVersionsResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.controller.errors import ControllerApiError
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.message_scan import MessageScan
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.publisher.authorizer import AuthorizerNotReadyError
from kraftlake.server.quotas.quota_managers import QuotaManagers
from kraftlake.server.quotas.request_throttle import RequestThrottle
from kraftlake.server.requests.error_responses import error_response
from kraftlake.server.requests.held_memory import HeldMemory, HeldShare
from kraftlake.server.requests.messages import (
    UNREADABLE,
    api_of,
    encoded_answer,
    module_of,
    response_in,
    response_type,
    scan_of,
    scanned_request_in,
    versions_of,
)
from kraftlake.server.requests.versions_answers import API_VERSIONS, NodeFeatures, VersionsAnswers

Respond: TypeAlias = Callable[[bytes | None], None]
"""Takes a request's answer once, from any thread: b"" if the client expects none, None to close the connection."""

NO_ANSWER: Final = b""
ANONYMOUS: Final = "User:ANONYMOUS"
_HELD_MAX_BYTES: Final = 256 * 1024 * 1024
_ELEMENT_BYTES: Final = 1024
"""The maximum memory of a list's element, from the reading of its request to the answer."""
_WITHOUT_REASON: Final = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT})
"""The errors without a message for the client, as in Kafka."""


@attrs.frozen(kw_only=True, eq=False)
class Peer:
    """The sender of the requests of one connection: its listener, IP address and principal.

    `security_protocol` is the connection's, a key of SECURITY_PROTOCOLS, and `token_authenticated` is set if a
    delegation token has authenticated the principal (KIP-48). `forwarded` is set if a broker has forwarded this
    client's request (KIP-590): the security protocol is then that between the nodes. `mute` makes the connection read
    no further request for a time in ms after the next answer (KIP-219); None where only the asked node can do so.
    """

    listener: str
    host: str
    principal: str = ANONYMOUS
    security_protocol: int = 0
    token_authenticated: bool = False
    forwarded: bool = False
    mute: Callable[[int], None] | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """A decoded request: `body` and the `module` of its response are kio's, of the request's version.

    One of `answer`, `answer_nothing` and `close` is called once, at once or later, from any thread. `frame` is the
    request without its length prefix, or its header alone if the request was `reduced`.
    """

    name: str
    version: int
    client_id: str | None
    peer: Peer
    body: Any = attrs.field(repr=False)  # it may have secrets
    module: Any
    elements: int = attrs.field(repr=False)
    """The number of elements in the body's lists when the body was read."""
    frame: bytes = attrs.field(repr=False)
    throttle: RequestThrottle | None = attrs.field(default=None, repr=False)
    """The quotas of the request's client; None while no client has a quota."""
    _held: HeldShare = attrs.field(repr=False)
    _respond: Respond = attrs.field(repr=False)

    @property
    def may_wait(self) -> bool:
        """Whether the request may wait for an event; False while waiting requests hold the maximum of memory."""
        return self._held.may_wait

    def reduced(self, body: Any) -> Request:
        """Return the request without the parts that its answer does not need, to save memory while it waits."""
        self._held.become(self.elements * _ELEMENT_BYTES)
        return attrs.evolve(self, body=body, frame=self.frame[: REQUEST_HEADER.size])

    def wait_ms(self, asked: timedelta) -> float:
        """The maximum time in ms that the request may wait: the requested time, or 0 if waiting is not allowed."""
        return asked / timedelta(milliseconds=1) if self.may_wait else 0

    def answer(self, response: Any) -> None:
        """Send a response of kio's class, with the client's throttle time."""
        if self.throttle is not None:
            response = self.throttle.throttled(response)
        self._respond(encoded_answer(self.frame, response))

    def answer_frame(self, frame: bytes) -> None:
        """Send another node's answer to this request, a frame without its length prefix."""
        if self.throttle is not None:
            self.answer(response_in(self.frame, frame))
        else:
            self._respond(frame)

    def fail(self, error: ErrorCode, message: str | None = None) -> None:
        """Answer with an error for each item of the request; a Produce without an answer closes the connection."""
        response = error_response(self.body, error, message)
        if response is None:
            self.close()
        else:
            self.answer(response)

    def answer_nothing(self) -> None:
        """Send no answer, which the client does not expect, and continue with the connection."""
        if self.throttle is not None:
            self.throttle.throttled(None)
        self._respond(NO_ANSWER)

    def close(self) -> None:
        """Close the connection instead of answering."""
        self._respond(None)


Answering: TypeAlias = Any | Future[Any]
"""A response as kio declares it, a future of one, or None where the handler answers by the request's own methods."""


@attrs.frozen(kw_only=True)
class Handler:
    """The handler of an API's requests, and the versions that are served; None for all versions of kio.

    `begin` raises ControllerApiError, or its future has it, if the request is refused as a whole. No request quota
    applies to an API that `is_exempt`.
    """

    begin: Callable[[Request], Answering]
    versions: range | None = None
    is_exempt: bool = False


class Dispatcher:
    """Decodes requests and dispatches them: ApiVersions to itself, and each other API to its handler.

    A request of another API or version closes the connection, as in Kafka, but for ApiVersions: see `VersionsAnswers`.
    `features` are part of the answer to ApiVersions. `on_fault` gets a request's errors: a fault of its handler is
    answered with UNKNOWN_SERVER_ERROR, and the connection continues; malformed bytes close it. `quotas` are the
    clients'.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        features: Callable[[], NodeFeatures] = NodeFeatures,
        quotas: QuotaManagers | None = None,
        on_fault: Callable[[str, BaseException], None],
    ) -> None:
        self._handlers = dict(handlers)
        self._served = {name: handler.versions or versions_of(name) for name, handler in handlers.items()}
        self._versions = VersionsAnswers(self._served, features)
        self._quotas = quotas
        self._on_fault = on_fault
        self.held = HeldMemory(_HELD_MAX_BYTES)
        """The memory of the requests that are not answered yet."""

    def handle(self, frame: bytes, peer: Peer, respond: Respond) -> None:
        """Answer a request, at once or later."""
        try:
            request = self._read(frame, scan_of(frame), peer, respond)
            if request is not None:
                self._serve(request)
        except UNREADABLE as fault:
            self._on_fault("unreadable_request", fault)
            respond(None)

    def _serve(self, request: Request) -> None:
        try:
            answer = self._handlers[request.name].begin(request)
            if isinstance(answer, Future):
                answer.add_done_callback(partial(self._done, request))
            elif answer is not None:
                request.answer(answer)
        except Exception as fault:
            self._refuse(request, fault)
        finally:
            if request.throttle is not None:
                request.throttle.leave_thread()

    def _done(self, request: Request, future: Future[Any]) -> None:
        fault = future.exception()
        try:
            if fault is None:
                request.answer(future.result())
            else:
                self._refuse(request, fault)
        except Exception as failed:
            self._on_fault("request_failed", failed)
            request.close()

    def _refuse(self, request: Request, fault: BaseException) -> None:
        match fault:
            case AuthorizerNotReadyError():
                request.close()
            case ControllerApiError():
                request.fail(fault.error, None if fault.error in _WITHOUT_REASON else fault.message)
            case _:
                self._on_fault("request_failed", fault)
                request.fail(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _read(self, frame: bytes, scan: MessageScan, peer: Peer, respond: Respond) -> Request | None:
        """Return the request for a handler; None for a request that is answered here.

        Raises one of UNREADABLE for malformed bytes.
        """
        name = api_of(frame)
        _, version, correlation, length = REQUEST_HEADER.unpack_from(frame)
        start = REQUEST_HEADER.size
        client_id = None if length < 0 else frame[start : start + length].decode(errors="replace")
        throttle = self._throttle(name, peer, client_id)
        if name == API_VERSIONS:
            asked = scanned_request_in(frame, scan)
            respond(self._versions.encoded(version, asked, correlation, throttle))
            return None
        if name is None or version not in self._served.get(name, ()):
            respond(None)
            return None
        body = scanned_request_in(frame, scan)
        module = module_of(response_type(name, version))
        held = self.held.share(len(frame) + scan.elements * _ELEMENT_BYTES)

        def answered(answer: bytes | None) -> None:
            held.end()
            respond(answer)

        return Request(
            name=name, version=version, client_id=client_id, peer=peer, body=body, module=module, frame=frame,
            elements=scan.elements, throttle=throttle, held=held, respond=answered,
        )  # fmt: skip

    def _throttle(self, name: str | None, peer: Peer, client_id: str | None) -> RequestThrottle | None:
        """Return the quotas of a request whose handling begins; None while no client has a quota."""
        quotas = self._quotas
        if quotas is None or not quotas.quotas.limits_requests:
            return None
        is_exempt = name in self._handlers and self._handlers[name].is_exempt
        return RequestThrottle(
            quotas, principal=peer.principal, client_id=client_id or "", mute=peer.mute, is_exempt=is_exempt
        )
