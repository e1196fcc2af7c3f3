"""The messages of one login, by mechanism: PLAIN and SCRAM, the latter by a password or a delegation token. Pure.

Source: org.apache.kafka.common.security.plain.internals.PlainSaslServer (RFC 4616),
org.apache.kafka.common.security.scram.internals.ScramSaslServer.
"""

from __future__ import annotations

import hmac
from collections.abc import Generator
from typing import TypeAlias

import attrs

from kraftlake.protocol.client_config import PLAIN
from kraftlake.protocol.scram import ScramError
from kraftlake.protocol.scram_server import ClientFirst, ScramServer
from kraftlake.server.listener_security import ServerSasl
from kraftlake.server.requests.login_users import LoginUsers


class LoginRefusedError(Exception):
    """The client is not who it says. The message is for the log of the node at most, never for the client."""


@attrs.frozen(kw_only=True)
class Login:
    """Who has logged in; `expires_ms` is the end of its delegation token in epoch ms, None without one."""

    principal: str
    mechanism: str
    expires_ms: int | None = None
    token_authenticated: bool = False


Messages: TypeAlias = Generator[bytes, bytes, tuple[bytes, Login]]
"""Receives the client's messages and yields the answers; returns the last answer, and who has logged in."""


def login_messages(mechanism: str, sasl: ServerSasl, users: LoginUsers, *, nonce: str, now_ms: int) -> Messages:
    """Begin a login; the first `next` takes it to the client's first message. Raises LoginRefusedError."""
    return _plain(sasl) if mechanism == PLAIN else _scram(mechanism, users, nonce, now_ms)


def _plain(sasl: ServerSasl) -> Messages:
    message = yield b""
    parts = message.decode(errors="replace").split("\0")
    if len(parts) != 3:
        raise LoginRefusedError("sent no message of PLAIN")
    acts_as, user, password = parts
    known = sasl.plain_password(user)
    # An unknown user takes as long as a wrong password.
    is_right = hmac.compare_digest(password.encode(), (known or "").encode())
    if not user or not password or known is None or not is_right or acts_as not in ("", user):
        raise LoginRefusedError("does not know the password")
    return b"", Login(principal=f"User:{user}", mechanism=PLAIN)


def _scram(mechanism: str, users: LoginUsers, nonce: str, now_ms: int) -> Messages:
    message = yield b""
    try:
        first = ClientFirst.parse(message)
        by_token = first.extensions.get("tokenauth", "").lower() == "true"
        token = users.token(mechanism, first.name, now_ms) if by_token else None
        known = token.credential if token else None if by_token else users.credential(mechanism, first.name)
        server = ScramServer(mechanism, first, known or users.pretended(mechanism, first.name), nonce)
        message = yield server.challenge
        answer = server.finish(message)
    except ScramError as fault:
        raise LoginRefusedError(str(fault)) from None
    if known is None:
        raise LoginRefusedError("is no user")
    principal = token.owner if token else f"User:{first.name}"
    return answer, Login(
        principal=principal, mechanism=mechanism, expires_ms=token.expires_ms if token else None,
        token_authenticated=token is not None,
    )  # fmt: skip
