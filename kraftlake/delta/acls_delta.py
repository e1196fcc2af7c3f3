"""Changes of access control lists."""

from __future__ import annotations

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.acls_image import AclsImage, StandardAcl
from kraftlake.records.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ReplayError


class AclsDelta:
    """`changes` has the new rule by id, in the order of the records; None for a removed rule of the base image.

    Source: org.apache.kafka.image.AclsDelta.
    """

    def __init__(self, image: AclsImage) -> None:
        self.image = image
        self.changes: dict[Uuid, StandardAcl | None] = {}

    def finish_snapshot(self) -> None:
        """Remove the rules that the snapshot lacks."""
        drop_missing(self.image.acls, self.changes)

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

    def apply(self) -> AclsImage:
        """The image after the changes; the same object if there are none."""
        acls = with_changes(self.image.acls, self.changes)
        return self.image if acls is self.image.acls else AclsImage(acls=acls)
