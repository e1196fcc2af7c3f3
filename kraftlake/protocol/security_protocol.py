"""The security protocols of listeners. Source: org.apache.kafka.common.security.auth.SecurityProtocol."""

from __future__ import annotations

from enum import IntEnum


class SecurityProtocol(IntEnum):
    """The security protocol of a listener, under Kafka's name and number."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @classmethod
    def of(cls, *, tls: bool, sasl: bool) -> SecurityProtocol:
        """The protocol with TLS, with logins, with both or with none."""
        return cls(int(tls) + 2 * int(sasl))

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        """Whether clients log in."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
