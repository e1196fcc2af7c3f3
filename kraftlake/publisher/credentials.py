"""Lookup of SCRAM credentials and delegation tokens for authentication."""

from __future__ import annotations

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.delegation_token_image import DelegationTokenData, DelegationTokenImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import ScramCredentialData, ScramImage
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher


class CredentialProvider(MetadataPublisher):
    """SCRAM credentials by mechanism (1: SCRAM-SHA-256, 2: SCRAM-SHA-512) and user.

    Source: org.apache.kafka.metadata.publisher.ScramPublisher, org.apache.kafka.security.CredentialProvider.
    """

    name = "ScramPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self._image = ScramImage.EMPTY

    def credential(self, mechanism: int, user: str) -> ScramCredentialData | None:
        """The credential of a user; None if the user has none of that mechanism."""
        users = self._image.mechanisms.get(mechanism)
        return None if users is None else users.get(user)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Store the credentials of the image."""
        self._image = new_image.scram


class DelegationTokenCache(MetadataPublisher):
    """Delegation tokens by id and by owner; expired ones stay until the controller removes them.

    Source: org.apache.kafka.metadata.publisher.DelegationTokenPublisher,
    org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache.
    """

    name = "DelegationTokenPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self._image = DelegationTokenImage.EMPTY

    def token(self, token_id: str) -> DelegationTokenData | None:
        """The token of that id."""
        return self._image.tokens.get(token_id)

    def usable(self, token_id: str, now_ms: int) -> DelegationTokenData | None:
        """The token of that id, unless it has expired at `now_ms` (epoch milliseconds)."""
        token = self._image.tokens.get(token_id)
        return None if token is None or now_ms > min(token.expiry_timestamp, token.max_timestamp) else token

    def tokens_of(self, owner: str) -> list[DelegationTokenData]:
        """The tokens that a principal (`Type:name`) owns, by id."""
        owned = (token for token in self._image.tokens.values() if token.owner == owner)
        return sorted(owned, key=lambda token: token.token_id)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Store the tokens of the image."""
        self._image = new_image.delegation_tokens
