"""The SCRAM credentials of users."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from rpds import HashTrieMap

from kraftlake.image.common_fields import common_fields, secrets_hidden
from kraftlake.image.image_part import ImagePart
from kraftlake.image.kafka_names import SCRAM_MECHANISMS, known_number
from kraftlake.image.short_repr import short_repr
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import UserScramCredentialRecord
from kraftlake.records.serde import ApiMessageAndVersion


def known_mechanism(mechanism: int) -> int:
    """A key of SCRAM_MECHANISMS: `mechanism`, or UNKNOWN where Kafka 4.4 does not know it, as in Kafka."""
    return known_number(SCRAM_MECHANISMS, mechanism)


def mechanism_name(mechanism: int) -> str:
    """`SCRAM-SHA-256`, …; `UNKNOWN(n)` for a type that Kafka does not know."""
    return SCRAM_MECHANISMS.get(mechanism, f"UNKNOWN({mechanism})")


@attrs.frozen(kw_only=True, field_transformer=secrets_hidden(UserScramCredentialRecord))
class ScramCredentialData:
    """One credential; its keys never appear in a repr. Source: org.apache.kafka.metadata.ScramCredentialData."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def from_record(cls, record: UserScramCredentialRecord) -> ScramCredentialData:
        """The credential in a record."""
        return cls(**common_fields(record, cls))

    def to_record(self, user: str, mechanism: int) -> ApiMessageAndVersion:
        """The UserScramCredentialRecord with this credential."""
        credential = common_fields(self, UserScramCredentialRecord)
        record = UserScramCredentialRecord(name=user, mechanism=mechanism, **credential)
        return ApiMessageAndVersion(record, 0)


@attrs.frozen(kw_only=True)
class ScramImage(ImagePart):
    """Credentials by mechanism (a key of SCRAM_MECHANISMS) and user; mechanisms without users are absent.

    Source: org.apache.kafka.image.ScramImage.
    """

    mechanisms: HashTrieMap[int, HashTrieMap[str, ScramCredentialData]] = HashTrieMap()

    def __repr__(self) -> str:
        return short_repr(self, credentials=sum(map(len, self.mechanisms.values())))

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The records of the credentials, by mechanism and user."""
        if self.mechanisms and not options.metadata_version.is_scram_supported:
            options.handle_loss("SCRAM credentials")
            return
        for mechanism, users in sorted(self.mechanisms.items(), key=lambda item: item[0]):
            for user, credential in sorted(users.items(), key=lambda item: item[0]):
                yield credential.to_record(user, mechanism)
