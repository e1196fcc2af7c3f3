"""Changes of SCRAM credentials."""

from __future__ import annotations

from rpds import HashTrieMap

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.scram_image import ScramCredentialData, ScramImage, known_mechanism
from kraftlake.records.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord


class ScramDelta:
    """`changes` has the new credential by mechanism and user, None for a removed one.

    A mechanism that Kafka 4.4 does not know is UNKNOWN, as in Kafka.

    Source: org.apache.kafka.image.ScramDelta.
    """

    def __init__(self, image: ScramImage) -> None:
        self.image = image
        self.changes: dict[int, dict[str, ScramCredentialData | None]] = {}

    def finish_snapshot(self) -> None:
        """Remove the credentials that the snapshot lacks."""
        for mechanism, users in self.image.mechanisms.items():
            drop_missing(users, self.changes.setdefault(mechanism, {}))

    def replay_user_scram_credential(self, record: UserScramCredentialRecord) -> None:
        """Set a credential."""
        self._changes_of(record.mechanism)[record.name] = ScramCredentialData.from_record(record)

    def replay_remove_user_scram_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove a credential; an unknown credential is not an error, as in Kafka."""
        self._changes_of(record.mechanism)[record.name] = None

    def apply(self) -> ScramImage:
        """The image after the changes; the same object if there are none."""
        mechanisms = self.image.mechanisms
        changed: dict[int, HashTrieMap[str, ScramCredentialData] | None] = {}
        for mechanism, changes in self.changes.items():
            users = with_changes(mechanisms.get(mechanism) or HashTrieMap(), changes)
            changed[mechanism] = users if users else None
        result = with_changes(mechanisms, changed)
        return self.image if result is mechanisms else ScramImage(mechanisms=result)

    def _changes_of(self, mechanism: int) -> dict[str, ScramCredentialData | None]:
        return self.changes.setdefault(known_mechanism(mechanism), {})
