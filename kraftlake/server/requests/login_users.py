"""The users who can log in at a node's listeners: those of the metadata log, delegation tokens, and those of PLAIN.

Source: org.apache.kafka.security.CredentialProvider, org.apache.kafka.common.security.scram.internals.
ScramServerCallbackHandler.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64encode
from typing import Final

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import ScramCredentialData
from kraftlake.protocol.scram import HASHES, MIN_ITERATIONS
from kraftlake.publisher.credentials import CredentialProvider, DelegationTokenCache
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher

_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_SALT_BYTES: Final = 24
_MOST_TOKENS: Final = 10_000


@attrs.frozen(kw_only=True)
class TokenLogin:
    """What a login by a delegation token gives: its owner, and the time in epoch ms at which it expires."""

    owner: str
    expires_ms: int
    credential: ScramCredentialData = attrs.field(repr=False)


class LoginUsers:
    """Looks up SCRAM credentials and delegation tokens in the newest image, from any thread.

    `secret_key` is `delegation.token.secret.key`; without it no token counts.
    """

    def __init__(self, secret_key: str | None = None) -> None:
        self._secret_key = secret_key
        self._scram, self._tokens = CredentialProvider(), DelegationTokenCache()
        self._pretence = os.urandom(32)
        self._of_tokens: dict[tuple[str, str], ScramCredentialData] = {}

    @property
    def publishers(self) -> tuple[MetadataPublisher, ...]:
        """The publishers that follow the image."""
        return self._scram, self._tokens

    @property
    def is_loaded(self) -> bool:
        """Whether the users are known: before the first image nobody is refused, and nobody let in."""
        return self._scram.is_loaded

    def load(self, image: MetadataImage) -> None:
        """Take the users of an image that was read before the node follows the log."""
        self._scram.load(image)
        self._tokens.load(image)

    def credential(self, mechanism: str, user: str) -> ScramCredentialData | None:
        """The SCRAM credential of a user; None if there is none of that mechanism."""
        return self._scram.credential(_NUMBERS[mechanism], user)

    def token(self, mechanism: str, token_id: str, now_ms: int) -> TokenLogin | None:
        """A delegation token as a user of SCRAM, whose password is its HMAC; None for an unknown or expired one."""
        token = self._tokens.usable(token_id, now_ms)
        if token is None or not self._secret_key:
            return None
        key = (mechanism, token_id)
        if key not in self._of_tokens:
            if len(self._of_tokens) >= _MOST_TOKENS:
                self._of_tokens.clear()
            self._of_tokens[key] = _credential(mechanism, b64encode(token.hmac(self._secret_key)))
        return TokenLogin(owner=token.owner, expires_ms=token.last_timestamp, credential=self._of_tokens[key])

    def pretended(self, mechanism: str, user: str) -> ScramCredentialData:
        """A credential for an unknown user, always the same, so that no one can tell who exists: no proof fits it."""
        size = hashlib.new(HASHES[mechanism]).digest_size
        salt = hmac.digest(self._pretence, f"{mechanism}\0{user}".encode(), "sha512")[:_SALT_BYTES]
        return ScramCredentialData(
            salt=salt, iterations=MIN_ITERATIONS, stored_key=os.urandom(size), server_key=os.urandom(size)
        )


def _credential(mechanism: str, password: bytes) -> ScramCredentialData:
    name, salt = HASHES[mechanism], os.urandom(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(name, password, salt, MIN_ITERATIONS)
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    server_key = hmac.digest(salted, b"Server Key", name)
    return ScramCredentialData(salt=salt, iterations=MIN_ITERATIONS, stored_key=stored, server_key=server_key)
