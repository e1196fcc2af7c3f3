"""The access control lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
from rpds import HashTrieMap

from kraftlake.image.common_fields import common_fields
from kraftlake.image.image_part import ImagePart
from kraftlake.image.kafka_names import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, known_number
from kraftlake.image.short_repr import short_repr
from kraftlake.records.metadata_records import AccessControlEntryRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

CODES: Final = {
    "resource_type": RESOURCE_TYPES,
    "pattern_type": PATTERN_TYPES,
    "operation": OPERATIONS,
    "permission_type": PERMISSIONS,
}
"""The names of an ACL's codes, by field."""


@attrs.frozen(kw_only=True)
class StandardAcl:
    """One rule; types, operation and permission are the codes of Kafka's enums, `principal` is `Type:name`.

    Source: org.apache.kafka.metadata.authorizer.StandardAcl.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def from_record(cls, record: AccessControlEntryRecord) -> StandardAcl:
        """The rule in a record; codes that Kafka 4.4 does not know become UNKNOWN, as in Kafka."""
        known = {field: known_number(names, getattr(record, field)) for field, names in CODES.items()}
        return cls(**common_fields(record, cls) | known)

    def to_record(self, acl_id: Uuid) -> ApiMessageAndVersion:
        """The AccessControlEntryRecord with this rule."""
        return ApiMessageAndVersion(
            AccessControlEntryRecord(id=acl_id, **common_fields(self, AccessControlEntryRecord)), 0
        )


@attrs.frozen(kw_only=True)
class AclsImage(ImagePart):
    """The rules by id. Source: org.apache.kafka.image.AclsImage."""

    acls: HashTrieMap[Uuid, StandardAcl] = HashTrieMap()

    def __repr__(self) -> str:
        return short_repr(self, rules=len(self.acls))

    def write(self) -> Iterator[ApiMessageAndVersion]:
        """The records of the rules, in the order of their ids' bytes."""
        for acl_id, acl in sorted(self.acls.items(), key=lambda item: bytes(item[0])):
            yield acl.to_record(acl_id)
