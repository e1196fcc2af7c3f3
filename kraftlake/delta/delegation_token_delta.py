"""Changes of delegation tokens."""

from __future__ import annotations

from kraftlake.delta.with_changes import EntriesDelta
from kraftlake.image.delegation_token_image import DelegationTokenData, DelegationTokenImage
from kraftlake.records.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord


class DelegationTokenDelta(EntriesDelta[DelegationTokenImage, str, DelegationTokenData]):
    """Changes of tokens by id. Source: org.apache.kafka.image.DelegationTokenDelta."""

    ENTRIES = "tokens"

    def replay_delegation_token(self, record: DelegationTokenRecord) -> None:
        """Create or renew a token; ReplayError if a principal is not `Type:name`."""
        self.changes[record.token_id] = DelegationTokenData.from_record(record)

    def replay_remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a token; an unknown token is not an error, as in Kafka."""
        self.changes[record.token_id] = None
