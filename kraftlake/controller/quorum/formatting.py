"""A new lake for controllers. Source: org.apache.kafka.metadata.storage.Formatter."""

from __future__ import annotations

from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.metadata_log import Contents, MetadataLog
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.clock import SystemClock


def format_lake(lake: str, metadata: BootstrapMetadata | None = None, *, cluster_id: str | None = None) -> MetadataLog:
    """Make an empty controlled lake; its log is to begin with `metadata`, by default that of the newest release.

    `cluster_id` None makes a new one. Raises LakeError where something lies at `lake`.
    """
    snapshot = BootstrapSnapshot(metadata=metadata or BootstrapMetadata.of(), timestamp=SystemClock().milliseconds())
    contents = Contents(snapshots=[(snapshot, snapshot.batches())])
    return MetadataLog.create(lake, cluster_id or str(Uuid.random()), "controlled", contents=contents)
