"""Lookup of SCRAM credentials and delegation tokens for authentication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from rpds import HashTrieMap

from kraftlake.delta import MetadataDelta
from kraftlake.image import DelegationTokenData, MetadataImage, ScramCredentialData
from kraftlake.replay import LoaderManifest

_Credentials: TypeAlias = "HashTrieMap[tuple[int, str], ScramCredentialData]"


class CredentialProvider:
    """SCRAM credentials by mechanism (1: SCRAM-SHA-256, 2: SCRAM-SHA-512) and user.

    Source: org.apache.kafka.metadata.publisher.ScramPublisher, org.apache.kafka.security.CredentialProvider.
    """

    name = "ScramPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self._credentials: _Credentials = HashTrieMap()

    def credential(self, mechanism: int, user: str) -> ScramCredentialData | None:
        """The credential of a user, None if there is none of that mechanism."""
        return self._credentials.get((mechanism, user))

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Apply the changed credentials."""
        credentials = self._credentials
        changes: Mapping[int, Mapping[str, ScramCredentialData | None]]
        changes = {} if delta.scram_delta is None else delta.scram_delta.changes
        for mechanism, users in changes.items():
            for user, credential in users.items():
                key = (mechanism, user)
                if credential is not None:
                    credentials = credentials.insert(key, credential)
                elif key in credentials:
                    credentials = credentials.remove(key)
        self._credentials = credentials


class DelegationTokenCache:
    """Delegation tokens by id and by owner; expired ones stay until the controller removes them.

    Source: org.apache.kafka.metadata.publisher.DelegationTokenPublisher,
    org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache.
    """

    name = "DelegationTokenPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self._tokens: HashTrieMap[str, DelegationTokenData] = HashTrieMap()

    def token(self, token_id: str) -> DelegationTokenData | None:
        """The token of that id."""
        return self._tokens.get(token_id)

    def usable(self, token_id: str, now_ms: int) -> DelegationTokenData | None:
        """The token of that id, unless it has expired at `now_ms` (epoch milliseconds)."""
        token = self._tokens.get(token_id)
        return None if token is None or now_ms > min(token.expiry_timestamp, token.max_timestamp) else token

    def tokens_of(self, owner: str) -> list[DelegationTokenData]:
        """The tokens that a principal (`Type:name`) owns, by id."""
        owned = (token for token in self._tokens.values() if token.owner == owner)
        return sorted(owned, key=lambda token: token.token_id)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Apply the changed tokens."""
        tokens = self._tokens
        changes: Mapping[str, DelegationTokenData | None]
        changes = {} if delta.delegation_token_delta is None else delta.delegation_token_delta.changes
        for token_id, token in changes.items():
            if token is not None:
                tokens = tokens.insert(token_id, token)
            elif token_id in tokens:
                tokens = tokens.remove(token_id)
        self._tokens = tokens
