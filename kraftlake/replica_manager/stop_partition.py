"""A request to stop a replica. Source: org.apache.kafka.server.StopPartition."""

from __future__ import annotations

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition


@attrs.frozen(kw_only=True)
class StopPartition:
    """A replica to stop; with `delete_local_log` its log is deleted."""

    partition: TopicPartition
    delete_local_log: bool
    reason: str = ""
