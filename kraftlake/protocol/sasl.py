"""Login over SASL: the mechanisms, and the requests that carry their messages.

Source: org.apache.kafka.common.security.authenticator.SaslClientAuthenticator, RFC 4616 (PLAIN), RFC 5802 (SCRAM),
RFC 7628 (OAUTHBEARER), KIP-152 (SaslAuthenticate), KIP-368 (sessions that end).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Generator
from typing import Any, Final

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import OAUTHBEARER, PLAIN, SaslConfig, read_limited
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_error import AuthenticationError
from kraftlake.protocol.scram import ScramError, scram_messages
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import in_words, shown

Ask = Callable[[Any, type[Any]], Any]
"""Sends a request of kio's class and returns the response of the type."""
Messages = Generator[bytes, bytes, None]
"""Yields the client's messages and receives the answers."""
REAUTHENTICATE_AT: Final = 0.85
"""The share of a session's lifetime after which the client logs in again: the earliest time in Kafka's clients."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def authenticate(ask: Ask, address: Address, config: SaslConfig) -> float:
    """Log in, on a connection without any other traffic meanwhile.

    Returns the validity of the login in seconds, infinity without a limit. Raises NodeError; AuthenticationError if the
    login is refused, or the token is missing.
    """
    messages = _messages(config)
    handshake = ask(SaslHandshakeRequest(mechanism=config.mechanism), SaslHandshakeResponse)
    if handshake.error_code != ErrorCode.NONE:
        raise AuthenticationError(f"{address} {_refused_mechanism(config, handshake)}.")
    answer = b""
    lifetime = 0.0
    try:
        message = next(messages)
        while True:
            response = ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse)
            if response.error_code != ErrorCode.NONE:
                raise AuthenticationError(f"{address} {_refusal(config, response, answer)}.")
            answer, lifetime = response.auth_bytes, response.session_lifetime.total_seconds()
            message = messages.send(answer)
    except StopIteration:
        return lifetime * REAUTHENTICATE_AT if lifetime > 0 else float("inf")
    except ScramError as fault:
        raise AuthenticationError(f"{address} {fault}.") from None


def _messages(config: SaslConfig) -> Messages:
    if config.mechanism == PLAIN:
        return _plain(config)
    if config.mechanism == OAUTHBEARER:
        return _bearer(_read_token(config.token_file or ""), config)
    return scram_messages(
        config.mechanism, user=config.user, password=config.password, nonce=secrets.token_urlsafe(24),
        extensions=config.extensions,
    )  # fmt: skip


def _plain(config: SaslConfig) -> Messages:
    yield f"\0{config.user}\0{config.password}".encode()


def _bearer(token: str, config: SaslConfig) -> Messages:
    more = "".join(f"{key}={value}\x01" for key, value in config.extensions.items())
    challenge = yield f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()
    if challenge:  # an error, which the client acknowledges; the node then refuses the login
        yield b"\x01"
        raise ScramError("refuses the token, and does not say why")


def _read_token(file: str) -> str:
    """Return the token in a file, which may be replaced at any time."""
    what = f"the token in {file} (sasl.oauthbearer.token.endpoint.url)"
    try:
        token = read_limited(file, what).decode("latin-1").strip()
    except UsageError as fault:
        raise AuthenticationError(str(fault)) from None
    if not _TOKEN.fullmatch(token):
        raise AuthenticationError(f"{what} has characters that no token has, or is empty.")
    return token


def _refused_mechanism(config: SaslConfig, handshake: Any) -> str:
    if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = in_words([shown(name, 40) for name in handshake.mechanisms[:20]]) or "no mechanism"
        return f"does not take {config.mechanism}, but {offered}: set sasl.mechanism and sasl.jaas.config"
    if handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return "takes no login: its listener speaks PLAINTEXT or SSL, so set security.protocol to that"
    return f"does not begin the login by {config.mechanism} ({handshake.error_code.name})"


def _refusal(config: SaslConfig, response: Any, challenge: bytes) -> str:
    who = "the token" if config.mechanism == OAUTHBEARER else f"user {shown(config.user)!r}"
    where = config.token_file if config.mechanism == OAUTHBEARER else "sasl.jaas.config"
    why = _status_in(challenge) or shown(response.error_message or response.error_code.name)
    return f"refuses {who} ({config.mechanism}): {why.rstrip('.')}; check {where}"


def _status_in(challenge: bytes) -> str:
    """Return the status in an error of OAUTHBEARER; empty for any other text."""
    try:
        status = json.loads(challenge)["status"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return shown(str(status))
