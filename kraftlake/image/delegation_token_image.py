"""The delegation tokens."""

from __future__ import annotations

import hmac
from collections.abc import Iterator

import attrs
from rpds import HashTrieMap

from kraftlake.image.common_fields import common_fields, secrets_hidden
from kraftlake.image.image_part import ImagePart
from kraftlake.image.short_repr import short_repr
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import DelegationTokenRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import ReplayError


@attrs.frozen(kw_only=True, field_transformer=secrets_hidden(DelegationTokenRecord))
class DelegationTokenData:
    """One token; principals are `Type:name`, times epoch ms. Source: org.apache.kafka.metadata.DelegationTokenData."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int

    @property
    def last_timestamp(self) -> int:
        """The time after which the token is expired."""
        return min(self.max_timestamp, self.expiry_timestamp)

    def hmac(self, secret_key: str) -> bytes:
        """The token's HMAC under `delegation.token.secret.key`: in base64, the password of a login with the token."""
        return hmac.digest(secret_key.encode(), self.token_id.encode(), "sha512")

    def is_of(self, principal: str) -> bool:
        """Whether a principal owns the token or may renew it."""
        return principal == self.owner or principal in self.renewers

    @classmethod
    def from_record(cls, record: DelegationTokenRecord) -> DelegationTokenData:
        """The token in a record; ReplayError if a principal is not `Type:name`."""
        for principal in (record.owner, record.requester, *record.renewers):
            if ":" not in principal:
                raise ReplayError(f"delegation token {record.token_id!r}: {principal!r} is no principal (Type:name).")
        return cls(**common_fields(record, cls), expiry_timestamp=record.expiration_timestamp)

    def to_record(self) -> ApiMessageAndVersion:
        """The DelegationTokenRecord with this token."""
        token = common_fields(self, DelegationTokenRecord)
        record = DelegationTokenRecord(**token, expiration_timestamp=self.expiry_timestamp)
        return ApiMessageAndVersion(record, 0)


@attrs.frozen(kw_only=True)
class DelegationTokenImage(ImagePart):
    """Tokens by id. Source: org.apache.kafka.image.DelegationTokenImage."""

    tokens: HashTrieMap[str, DelegationTokenData] = HashTrieMap()

    def __repr__(self) -> str:
        return short_repr(self, tokens=len(self.tokens))

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The records of the tokens, by id."""
        if self.tokens and not options.metadata_version.is_delegation_token_supported:
            options.handle_loss("delegation tokens")
            return
        for _, token in sorted(self.tokens.items(), key=lambda item: item[0]):
            yield token.to_record()
