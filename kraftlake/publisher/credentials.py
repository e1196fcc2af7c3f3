"""Lookup of SCRAM credentials and delegation tokens for authentication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.delegation_token_image import DelegationTokenData, DelegationTokenImage
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.scram_image import ScramCredentialData, ScramImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher


@attrs.frozen
class ScramDescription:
    """The public data of a user's SCRAM credentials: iterations by mechanism, never a key."""

    user: str
    iterations: Mapping[int, int] = {}
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def describe_scram_credentials(image: ScramImage, users: Sequence[str] | None = None) -> list[ScramDescription]:
    """The mechanisms of users, sorted by name; all users if `users` is empty.

    Source: org.apache.kafka.image.ScramImage.describe.
    """
    mechanisms = image.mechanisms
    names = users or sorted({user for credentials in mechanisms.values() for user in credentials})
    counts = Counter(names)
    descriptions = []
    for user, count in counts.items():
        found = {m: c[user].iterations for m, c in sorted(mechanisms.items()) if user in c}
        if count > 1:
            message = f"User {user!r} is named twice in one request."
            descriptions.append(ScramDescription(user, {}, ErrorCode.DUPLICATE_RESOURCE, message))
        elif found:
            descriptions.append(ScramDescription(user, found))
        else:
            message = f"User {user!r} has no SCRAM credentials."
            descriptions.append(ScramDescription(user, {}, ErrorCode.RESOURCE_NOT_FOUND, message))
    return descriptions


class CredentialProvider(MetadataPublisher):
    """SCRAM credentials by mechanism (1: SCRAM-SHA-256, 2: SCRAM-SHA-512) and user.

    Source: org.apache.kafka.metadata.publisher.ScramPublisher, org.apache.kafka.security.CredentialProvider.
    """

    name = "ScramPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self._image = ScramImage.EMPTY
        self.is_loaded = False
        """Whether the credentials of an image are known."""

    def credential(self, mechanism: int, user: str) -> ScramCredentialData | None:
        """The credential of a user; None if the user has none of that mechanism."""
        users = self._image.mechanisms.get(mechanism)
        return None if users is None else users.get(user)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Store the credentials of the image."""
        self.load(new_image)

    def load(self, image: MetadataImage) -> None:
        """Store the credentials of an image."""
        self._image = image.scram
        self.is_loaded = True


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
        return None if token is None or now_ms > token.last_timestamp else token

    def tokens_of(self, owner: str) -> list[DelegationTokenData]:
        """The tokens that a principal (`Type:name`) owns, by id."""
        owned = (token for token in self._image.tokens.values() if token.owner == owner)
        return sorted(owned, key=lambda token: token.token_id)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Store the tokens of the image."""
        self.load(new_image)

    def load(self, image: MetadataImage) -> None:
        """Store the tokens of an image."""
        self._image = image.delegation_tokens
