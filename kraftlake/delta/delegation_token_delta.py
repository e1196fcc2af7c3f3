"""Changes of delegation tokens."""

from __future__ import annotations

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.delegation_token_image import DelegationTokenData, DelegationTokenImage
from kraftlake.records.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord


class DelegationTokenDelta:
    """`changes` has the new token by id, None for a removed one.

    Source: org.apache.kafka.image.DelegationTokenDelta.
    """

    def __init__(self, image: DelegationTokenImage) -> None:
        self.image = image
        self.changes: dict[str, DelegationTokenData | None] = {}

    def finish_snapshot(self) -> None:
        """Remove the tokens that the snapshot lacks."""
        drop_missing(self.image.tokens, self.changes)

    def replay_delegation_token(self, record: DelegationTokenRecord) -> None:
        """Create or renew a token; ReplayError if a principal is not `Type:name`."""
        self.changes[record.token_id] = DelegationTokenData.from_record(record)

    def replay_remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a token; an unknown token is not an error, as in Kafka."""
        self.changes[record.token_id] = None

    def apply(self) -> DelegationTokenImage:
        """The image after the changes; the same object if there are none."""
        tokens = with_changes(self.image.tokens, self.changes)
        return self.image if tokens is self.image.tokens else DelegationTokenImage(tokens=tokens)
