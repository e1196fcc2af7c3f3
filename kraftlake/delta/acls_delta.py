"""Changes of access control lists."""

from __future__ import annotations

from kraftlake.delta.with_changes import EntriesDelta
from kraftlake.image.acls_image import AclsImage, StandardAcl
from kraftlake.records.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError


class AclsDelta(EntriesDelta[AclsImage, Uuid, StandardAcl]):
    """Changes of rules by id. Source: org.apache.kafka.image.AclsDelta."""

    ENTRIES = "acls"

    def replay_access_control_entry(self, record: AccessControlEntryRecord) -> None:
        """Add a rule."""
        self.changes[record.id] = StandardAcl.from_record(record)

    def replay_remove_access_control_entry(self, record: RemoveAccessControlEntryRecord) -> None:
        """Remove a rule; a rule added within this delta leaves no trace. ReplayError if there is none."""
        in_base = record.id in self.image.acls
        if self.changes.get(record.id) is None and (record.id in self.changes or not in_base):
            raise ReplayError(f"the ACL with id {record.id} does not exist.")
        if in_base:
            self.changes[record.id] = None
        else:
            del self.changes[record.id]
