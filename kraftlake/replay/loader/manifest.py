"""The manifest of an image and a metadata delta for publishers: the change's origin, and the quorum's leader."""

from __future__ import annotations

from typing import ClassVar

import attrs

from kraftlake.image.provenance import MetadataProvenance


@attrs.frozen(kw_only=True)
class LogDeltaManifest:
    """A change that came from the log (LoaderManifestType.LOG_DELTA).

    `base_offset` is the first offset that the change covers, `num_batches`, `num_records` and `num_bytes` (on disk,
    or of the records' values where that is unknown) what it was read from; a batch that is published in two parts
    counts as a batch with the later one. `elapsed_ns` is how long replaying and applying took, 0 without a clock.
    `leader_id` is what the last LeaderChange said, `num_skipped` how many records a lenient loader has left out up to
    here: above 0 the image has diverged from what the cluster had.
    Source: org.apache.kafka.image.loader.LogDeltaManifest.
    """

    provenance: MetadataProvenance
    base_offset: int
    num_batches: int
    num_bytes: int
    num_records: int = 0
    elapsed_ns: int = 0
    leader_id: int | None = None
    num_skipped: int = 0


@attrs.frozen(kw_only=True)
class SnapshotManifest:
    """A change that came from a snapshot as a whole, or from an image that is new to the publisher.

    The fields are those of `LogDeltaManifest`. Source: org.apache.kafka.image.loader.SnapshotManifest.
    """

    provenance: MetadataProvenance
    elapsed_ns: int = 0
    num_skipped: int = 0


LoaderManifest = LogDeltaManifest | SnapshotManifest
"""Source: org.apache.kafka.image.loader.LoaderManifest."""


@attrs.frozen(kw_only=True)
class LeaderAndEpoch:
    """The controller that leads the quorum, None if unknown. Source: org.apache.kafka.raft.LeaderAndEpoch."""

    UNKNOWN: ClassVar[LeaderAndEpoch]

    leader_id: int | None
    epoch: int

    def is_leader(self, node_id: int) -> bool:
        """Whether that node leads."""
        return self.leader_id == node_id


LeaderAndEpoch.UNKNOWN = LeaderAndEpoch(leader_id=None, epoch=0)


@attrs.frozen(kw_only=True)
class SkippedRecord:
    """A record that a lenient replay left out: images after it differ from the cluster's."""

    offset: int
    type: str
    reason: str
