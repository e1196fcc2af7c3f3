"""What a connection to a listener with TLS or logins has shown of itself."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Callable
from typing import Final

import attrs

from kraftlake.runtime.clock import Clock
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.log import get_logger
from kraftlake.server.listener_security import ListenerSecurity, ServerTls
from kraftlake.server.principal_mapping import subject_of
from kraftlake.server.requests.authentication_counts import AuthenticationCounts
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.doorway import Doorway
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.messages import api_of
from kraftlake.server.requests.sasl_authenticator import HANDSHAKE, SaslServerAuthenticator, Step
from kraftlake.server.requests.sasl_login import Login
from kraftlake.server.requests.tls_session import TlsSession

_AGAIN_SECONDS: Final = 1.0
"""The time from a login to the next one of its connection, as in Kafka."""
_NONCE_BYTES: Final = 24
_PREFIX_BYTES: Final = 64 * 1024
_log = get_logger(__name__)


@attrs.frozen(kw_only=True)
class Host:
    """What guests share: the listener's security, its counts and its door, the users, and what answers ApiVersions."""

    security: ListenerSecurity
    context: ssl.SSLContext | None
    counts: AuthenticationCounts
    door: Doorway
    users: LoginUsers
    clock: Clock
    versions: Callable[[bytes], bytes | None]


class Guest:
    """The TLS and the logins of one connection; all calls are from the loop's thread, with the time of the loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sasl = host.security.sasl
        self.door = host.door
        self.tls = None if host.context is None else TlsSession(host.context)
        """The TLS of the connection, where the listener has it."""
        self.has_login = self._sasl is not None
        """Whether a login decides who the client is, and not its certificate."""
        self.failure_delay_seconds = host.security.failed_authentication_delay_ms / 1000
        self._authenticator: SaslServerAuthenticator | None = self._begin(None) if self.has_login else None
        """The login that has begun."""
        self._login: Login | None = None
        self._ends_at: float | None = None
        self._began_at = float("-inf")

    @property
    def max_receive_bytes(self) -> int:
        """The longest request before the login."""
        return _PREFIX_BYTES if self._sasl is None else self._sasl.max_receive_bytes

    def named(self, peer: Peer) -> Peer | None:
        """Who has connected, by the certificate that it has shown; None if there is no principal for it."""
        made = self._by_certificate(self._host.security.tls, peer)
        if made is None:
            self._host.counts.failed += 1
        else:
            self._host.counts.successful += 1
        return made

    def _by_certificate(self, config: ServerTls | None, peer: Peer) -> Peer | None:
        certificate = None if self.tls is None else self.tls.certificate
        if config is None or certificate is None:
            return peer
        try:
            subject = subject_of(certificate)
        except (KraftlakeError, ValueError) as fault:
            _log.warning("unreadable_certificate", cause=str(fault), host=peer.host, listener=peer.listener)
            return None
        name = config.mapper.name(subject)
        if name is None:
            _log.warning("no_principal", subject=subject, host=peer.host, listener=peer.listener)
            return None
        return attrs.evolve(peer, principal=f"User:{name}")

    def tls_failed(self) -> None:
        """Count a handshake that has failed."""
        self._host.counts.failed += 1

    def takes(self, frame: bytes, now: float) -> bool:
        """Whether a request is one of a login: of the first one, or of one anew, at most once a second (KIP-368)."""
        if self._authenticator is not None:
            return True
        if self._login is None or self._ends_at is None or len(frame) < 2 or api_of(frame) != HANDSHAKE:
            return False
        if now - self._began_at < _AGAIN_SECONDS:
            return False
        self._began_at = now
        self._authenticator = self._begin(self._login)
        return True

    def is_over(self, now: float) -> bool:
        """Whether the session has ended, so that no request is taken any more; it is counted."""
        is_over = self._ends_at is not None and now > self._ends_at
        self._host.counts.expired += is_over
        return is_over

    def receive(self, frame: bytes, now: float, peer: Peer) -> Step:
        """Take a message of a login."""
        assert self._authenticator is not None, "it is one of a login"
        step = self._authenticator.receive(frame, self._host.clock.milliseconds())
        if step.failed:
            if self._login is None:
                self._host.counts.failed += 1
            else:
                self._host.counts.failed_again += 1
            _log.info("login_failed", host=peer.host, listener=peer.listener, client=step.why)
        elif step.login is not None:
            if self._login is None:
                self._host.counts.successful += 1
            else:
                self._host.counts.reauthenticated += 1
            self._login, self._authenticator = step.login, None
            self._ends_at = None if step.lifetime_ms is None else now + step.lifetime_ms / 1000
        return step

    def logged_in(self, login: Login, peer: Peer) -> Peer:
        """The client after a login."""
        return attrs.evolve(peer, principal=login.principal, token_authenticated=login.token_authenticated)

    def _begin(self, before: Login | None) -> SaslServerAuthenticator:
        assert self._sasl is not None, "the listener has logins"
        return SaslServerAuthenticator(
            self._sasl, self._host.users, versions=self._host.versions,
            nonce=lambda: secrets.token_urlsafe(_NONCE_BYTES), before=before,
        )  # fmt: skip
