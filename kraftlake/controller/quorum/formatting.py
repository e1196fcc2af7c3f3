"""A new lake for controllers. Source: org.apache.kafka.metadata.storage.Formatter."""

from __future__ import annotations

from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.metadata_log import Contents, MetadataLog
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.errors import LakeError


def format_lake(lake: str, metadata: BootstrapMetadata | None = None, *, cluster_id: str | None = None) -> MetadataLog:
    """Make an empty controlled lake; its log is to begin with `metadata`, by default that of the newest release.

    `cluster_id` None makes a new one. Raises LakeError where something lies at `lake`.
    """
    snapshot = BootstrapSnapshot(metadata=metadata or BootstrapMetadata.of(), timestamp=SystemClock().milliseconds())
    contents = Contents(snapshots=[(snapshot, snapshot.batches())])
    return MetadataLog.create(lake, cluster_id or str(Uuid.random()), "controlled", contents=contents)


def open_controlled(lake: str) -> MetadataLog:
    """Open the log of a controlled lake. Raises LakeError for what is none, with the command that makes one."""
    log = MetadataLog.open(lake, maker=f"kraftlake format {lake}")
    if log.role != "controlled":
        raise LakeError(
            f"{log.path} is an imported lake, whose cluster lives elsewhere: `kraftlake fork {log.path} COPY` makes a "
            f"copy that controllers and brokers of ours can have."
        )
    return log
