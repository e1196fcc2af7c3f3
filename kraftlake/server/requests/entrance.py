"""The security of a running listener: its TLS context, its counts, and a guest for each new connection."""

from __future__ import annotations

import ssl

from kraftlake.protocol.tls import server_context
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.server.listener_security import PLAINTEXT, ListenerSecurity
from kraftlake.server.requests.authentication_counts import AuthenticationCounts
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.doorway import Doorway
from kraftlake.server.requests.guest import Guest, Host
from kraftlake.server.requests.login_users import LoginUsers
from kraftlake.server.requests.request_queue import Handle


class Entrance:
    """Opens the stores of a listener's security. Raises UsageError naming the setting or file at fault.

    `secure` may be called by any thread, the other methods by that of the listener's loop.
    """

    def __init__(
        self,
        listener: str,
        handle: Handle,
        security: ListenerSecurity = PLAINTEXT,
        *,
        users: LoginUsers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.listener = listener
        """The name of the listener."""
        self.counts = AuthenticationCounts()
        self._handle = handle
        self._users = users or LoginUsers()
        self._clock = clock or SystemClock()
        self.secure(security)

    def secure(self, security: ListenerSecurity) -> None:
        """Apply other security to new connections, with stores that are read anew. Raises UsageError."""
        tls = security.tls
        self._context: ssl.SSLContext | None = None if tls is None else server_context(tls.stores, tls.client_auth)
        self.security = security

    @property
    def is_guarded(self) -> bool:
        """Whether clients have to do something before their requests are taken."""
        return self.security.protocol.has_tls or self.security.protocol.has_sasl

    def peer(self, host: str) -> Peer:
        """The client of a new connection, not authenticated yet."""
        return Peer(listener=self.listener, host=host, security_protocol=self.security.protocol)

    def guest(self, door: Doorway, peer: Peer) -> Guest:
        """The state of a new connection of a client."""
        return Guest(
            Host(
                security=self.security, context=self._context, counts=self.counts, door=door, users=self._users,
                clock=self._clock, versions=lambda frame: self._answered(frame, peer),
            )
        )  # fmt: skip

    def _answered(self, frame: bytes, peer: Peer) -> bytes | None:
        """Return the node's answer to ApiVersions, which it gives at once."""
        answers: list[bytes | None] = []
        self._handle(frame, peer, answers.append)
        return answers[0] if answers else None
