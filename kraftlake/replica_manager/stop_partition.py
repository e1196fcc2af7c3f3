"""A replica that the replica manager is asked to stop. Source: org.apache.kafka.server.StopPartition."""

from __future__ import annotations

import attrs

from kraftlake.delta import TopicPartition


@attrs.frozen(kw_only=True)
class StopPartition:
    """A replica to stop; with `delete_local_log` for good."""

    partition: TopicPartition
    delete_local_log: bool
    reason: str = ""
