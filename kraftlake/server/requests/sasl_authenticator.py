"""The order of a login's requests: ApiVersions, SaslHandshake, SaslAuthenticate; and of a login anew (KIP-368). Pure.

Source: org.apache.kafka.common.security.authenticator.SaslServerAuthenticator.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Final

import attrs
from kio.static.primitive import i64Timedelta

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.server.listener_security import ServerSasl
from kraftlake.server.requests.error_responses import error_response
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.messages import UNREADABLE, api_of, encoded_answer, of_version, request_in, response_type
from kraftlake.server.requests.sasl_login import Login, LoginRefusedError, Messages, login_messages

HANDSHAKE: Final = "sasl_handshake"
_AUTHENTICATE: Final = "sasl_authenticate"
_VERSIONS: Final = "api_versions"
_NO_ERROR: Final = b"\0\0"
_ERROR_AT: Final = slice(4, 6)
"""The place of the error in an answer to ApiVersions, after the number of the request."""
_LONGEST_STRAY: Final = 4096
"""The longest request out of order that is decoded for its answer."""


class _Next(Enum):
    """What the client may send."""

    HANDSHAKE_OR_VERSIONS = auto()
    HANDSHAKE = auto()
    MESSAGE = auto()
    NOTHING = auto()


@attrs.frozen(kw_only=True)
class Step:
    """What comes of a client's message: an answer (None for none), and the end of the login, good or bad.

    After a failure the connection is closed, `at_once` if it was no attempt to log in. `lifetime_ms` is that of the
    session, None without a limit. `why` is for the node's log.
    """

    answer: bytes | None = None
    login: Login | None = None
    lifetime_ms: int | None = None
    failed: bool = False
    at_once: bool = False
    why: str = ""


class SaslServerAuthenticator:
    """One login of a connection; with `before`, the login anew of its client, who stays the same by the same mechanism.

    `versions` answers a request for ApiVersions, None if the node does not answer yet. `nonce` returns a new nonce.
    """

    def __init__(
        self,
        sasl: ServerSasl,
        users: LoginUsers,
        *,
        versions: Callable[[bytes], bytes | None],
        nonce: Callable[[], str],
        before: Login | None = None,
    ) -> None:
        self._sasl, self._users, self._versions, self._nonce = sasl, users, versions, nonce
        self._before = before
        self._next = _Next.HANDSHAKE_OR_VERSIONS if before is None else _Next.HANDSHAKE
        self._mechanism = ""
        self._has_headers = False
        """Whether messages are in SaslAuthenticate requests (KIP-152); old clients send them bare."""
        self._messages: Messages | None = None

    def receive(self, frame: bytes, now_ms: int) -> Step:
        """Take the client's next frame, without its length prefix; `now_ms` is the time since the epoch."""
        try:
            if self._next is not _Next.MESSAGE:
                return self._begin(frame, now_ms)
            return self._with_header(frame, now_ms) if self._has_headers else self._bare(frame, now_ms)
        except UNREADABLE as fault:
            self._next = _Next.NOTHING
            return Step(failed=True, at_once=True, why=f"{type(fault).__name__}: {fault}")

    def _begin(self, frame: bytes, now_ms: int) -> Step:
        """Answer ApiVersions, once, and SaslHandshake."""
        api = api_of(frame) if len(frame) >= REQUEST_HEADER.size else None
        if api == _VERSIONS and self._next is _Next.HANDSHAKE_OR_VERSIONS:
            answer = self._versions(frame)
            if answer is None:
                return Step(failed=True, at_once=True, why="is too early: the node is starting")
            if answer[_ERROR_AT] == _NO_ERROR:
                self._next = _Next.HANDSHAKE
            return Step(answer=answer)
        if api != HANDSHAKE or self._next is _Next.NOTHING:
            return self._failed(f"sent {api or 'no request'} before its login")
        asked = request_in(frame)
        if asked is None:
            return Step(failed=True, at_once=True, why="sent an unknown version of SaslHandshake")
        return self._shake_hands(frame, asked, now_ms)

    def _shake_hands(self, frame: bytes, asked: Any, now_ms: int) -> Step:
        self._has_headers = self._has_headers or asked.__version__ > 0
        self._mechanism = asked.mechanism
        error = ErrorCode.NONE
        if asked.mechanism not in self._sasl.mechanisms:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = _answer(frame, HANDSHAKE, asked, error_code=error, mechanisms=self._sasl.mechanisms)
        if error != ErrorCode.NONE:
            return self._failed(f"asked for the mechanism {asked.mechanism[:40]!r}", answer)
        if self._before is not None and self._before.mechanism != asked.mechanism:
            self._next = _Next.NOTHING  # the failure is that of its next message
            return Step(answer=answer)
        self._messages = login_messages(
            asked.mechanism, self._sasl, self._users, nonce=self._nonce(), now_ms=now_ms
        )  # fmt: skip
        next(self._messages)
        self._next = _Next.MESSAGE
        return Step(answer=answer)

    def _with_header(self, frame: bytes, now_ms: int) -> Step:
        """Take a message in a SaslAuthenticate request."""
        if api_of(frame) != _AUTHENTICATE:
            return self._failed("sent another request within its login", _illegal(frame))
        asked = request_in(frame)
        if asked is None:
            return Step(failed=True, at_once=True, why="sent an unknown version of SaslAuthenticate")
        if not self._knows_users:
            return Step(failed=True, at_once=True, why="is too early: the users are not loaded yet")
        try:
            message, login = self._sent(bytes(asked.auth_bytes))
        except LoginRefusedError as fault:
            return self._failed(str(fault), _answer(
                frame, _AUTHENTICATE, asked, error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=self._refusal, auth_bytes=b"", session_lifetime=_lifetime(0),
            ))  # fmt: skip
        lifetime_ms = None if login is None else self._lifetime_ms(login, now_ms)
        answer = _answer(
            frame, _AUTHENTICATE, asked, error_code=ErrorCode.NONE, error_message=None, auth_bytes=message,
            session_lifetime=_lifetime(lifetime_ms or 0),
        )  # fmt: skip
        return Step(answer=answer, login=login, lifetime_ms=lifetime_ms)

    def _bare(self, frame: bytes, now_ms: int) -> Step:
        """Take a message that is a frame of its own, as clients before KIP-152 send it."""
        if not self._knows_users:
            return Step(failed=True, at_once=True, why="is too early: the users are not loaded yet")
        try:
            message, login = self._sent(frame)
        except LoginRefusedError as fault:
            return self._failed(str(fault))
        return Step(
            answer=message, login=login, lifetime_ms=None if login is None else self._lifetime_ms(login, now_ms)
        )

    @property
    def _knows_users(self) -> bool:
        return self._users.is_loaded or self._mechanism == "PLAIN"

    def _sent(self, message: bytes) -> tuple[bytes, Login | None]:
        """Pass a message to the mechanism; returns its answer, and at its end who has logged in."""
        assert self._messages is not None, "a mechanism was chosen"
        try:
            return self._messages.send(message), None
        except StopIteration as end:
            answer, login = end.value
        if self._before is not None and self._before.principal != login.principal:
            raise LoginRefusedError(f"was {self._before.principal} before")
        self._next = _Next.NOTHING
        return answer, login

    @property
    def _refusal(self) -> str:
        """The message for the client, which never says whether the user or the password is wrong."""
        what = "authentication" if self._before is None else "re-authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"

    def _lifetime_ms(self, login: Login, now_ms: int) -> int | None:
        """The session's lifetime: the shorter one of the listener's and the delegation token's."""
        longest = self._sasl.max_reauth_ms.get(login.mechanism, 0)
        limits = [longest] if longest > 0 else []
        if login.expires_ms is not None:
            limits.append(max(0, login.expires_ms - now_ms))
        return min(limits, default=None)

    def _failed(self, why: str, answer: bytes | None = None) -> Step:
        self._next = _Next.NOTHING
        return Step(answer=answer, failed=True, why=why)


def _answer(frame: bytes, api: str, asked: Any, **values: Any) -> bytes:
    return encoded_answer(frame, of_version(response_type(api, asked.__version__), **values))


def _illegal(frame: bytes) -> bytes | None:
    """The answer to a request out of order; None for a long or unreadable one."""
    asked = request_in(frame) if len(frame) <= _LONGEST_STRAY else None
    response = None if asked is None else error_response(asked, ErrorCode.ILLEGAL_SASL_STATE)
    return None if response is None else encoded_answer(frame, response)


def _lifetime(milliseconds: int) -> i64Timedelta:
    return i64Timedelta.parse(timedelta(milliseconds=milliseconds))
