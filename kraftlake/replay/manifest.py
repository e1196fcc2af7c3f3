"""What a publisher is told beside the image and the metadata delta: where the change came from."""

from __future__ import annotations

import attrs

from kraftlake.image import MetadataProvenance


@attrs.frozen(kw_only=True)
class LogDeltaManifest:
    """A change that came from the log (LoaderManifestType.LOG_DELTA).

    `base_offset` is the first offset that the change covers, `num_batches` and `num_bytes` (on disk, 0 where that is
    unknown) the batches it was read from; a batch that is published in two parts counts with the later one.
    `leader_id` is what the last LeaderChange said. Source: org.apache.kafka.image.loader.LogDeltaManifest.
    """

    provenance: MetadataProvenance
    base_offset: int
    num_batches: int
    num_bytes: int
    leader_id: int | None = None


@attrs.frozen(kw_only=True)
class SnapshotManifest:
    """A change that came from a snapshot as a whole. Source: org.apache.kafka.image.loader.SnapshotManifest."""

    provenance: MetadataProvenance
    num_records: int


@attrs.frozen(kw_only=True)
class SkippedRecord:
    """A record that a lenient replay left out: an image after it is no longer what the cluster had."""

    offset: int
    type: str
    reason: str
