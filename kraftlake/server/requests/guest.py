"""The way of one connection into a listener with TLS or logins."""

from __future__ import annotations

import ssl

import attrs

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.log import get_logger
from kraftlake.server.listener_security import ListenerSecurity
from kraftlake.server.principal_mapping import subject_of
from kraftlake.server.requests.authentication_counts import AuthenticationCounts
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.doorway import Doorway
from kraftlake.server.requests.tls_session import TlsSession

_log = get_logger(__name__)


class Guest:
    """What a connection has shown of itself so far; all calls are from the loop's thread.

    Source: org.apache.kafka.common.network.SslChannelBuilder, SaslChannelBuilder.
    """

    def __init__(
        self, security: ListenerSecurity, context: ssl.SSLContext | None, counts: AuthenticationCounts, door: Doorway
    ) -> None:
        self._security = security
        self._counts = counts
        self.door = door
        self.tls = None if context is None else TlsSession(context)
        """The TLS of the connection, where the listener has it."""

    def named(self, peer: Peer) -> Peer | None:
        """Who has connected, by the certificate that it has shown; None if there is no principal for it."""
        made = self._by_certificate(peer)
        if made is None:
            self._counts.failed += 1
        else:
            self._counts.successful += 1
        return made

    def _by_certificate(self, peer: Peer) -> Peer | None:
        config = self._security.tls
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
        self._counts.failed += 1
