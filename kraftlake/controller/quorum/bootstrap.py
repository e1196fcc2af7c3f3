"""The bootstrap records of a cluster, which a controller writes first to an empty log.

The lake stores them as the snapshot that ends at offset 0, like Kafka's 0…0-0….checkpoint. Source:
org.apache.kafka.metadata.storage.Formatter and BootstrapMetadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from kraftlake.controller.cluster.supported_features import FEATURES, default_level, missing_need
from kraftlake.image.features_image import METADATA_VERSION
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import SnapshotFooterRecord, SnapshotHeaderRecord
from kraftlake.records.metadata_records import FeatureLevelRecord
from kraftlake.records.metadata_version import LATEST_PRODUCTION, MetadataVersion, from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.errors import LakeError, UsageError


@attrs.frozen
class BootstrapMetadata:
    """The bootstrap records; one of them sets the metadata.version."""

    records: Sequence[ApiMessageAndVersion]

    @classmethod
    def of(
        cls,
        version: MetadataVersion = LATEST_PRODUCTION,
        features: Mapping[str, int] | None = None,
        more: Sequence[ApiMessageAndVersion] = (),
    ) -> BootstrapMetadata:
        """Return the default levels of a release, changed by `features`, and `more` records.

        Raises UsageError for unknown levels.
        """
        levels = {name: default_level(name, version) for name in FEATURES}
        for name, level in (features or {}).items():
            if name not in FEATURES:
                raise UsageError(f"There is no feature {name!r} to set; there are {', '.join(sorted(FEATURES))}.")
            if level and level not in {known.level for known in FEATURES[name]}:
                raise UsageError(f"There is no level {level} of {name}; the highest is {FEATURES[name][-1].level}.")
            levels[name] = level
        for name, level in levels.items():
            need = missing_need(name, level, {**levels, METADATA_VERSION: version.level})
            if need is not None:
                raise UsageError(f"{need}, and {METADATA_VERSION} is {version.level} ({version}).")
        set_levels = {METADATA_VERSION: version.level, **{n: levels[n] for n in sorted(levels) if levels[n]}}
        records = [
            ApiMessageAndVersion(FeatureLevelRecord(name=name, feature_level=level), 0)
            for name, level in set_levels.items()
        ]
        return cls((*records, *more))

    @property
    def metadata_version(self) -> MetadataVersion:
        """The metadata.version set by the records; raises LakeError if none is set."""
        level = self.feature_level(METADATA_VERSION)
        if not level:
            raise LakeError("The bootstrap records of the lake give no metadata.version: make it anew with format.")
        return from_feature_level(level)

    def feature_level(self, name: str) -> int:
        """The level of a feature, 0 if it is not set."""
        level = 0
        for record in self.records:
            if isinstance(record.message, FeatureLevelRecord) and record.message.name == name:
                level = record.message.feature_level
        return level


@attrs.frozen(kw_only=True)
class BootstrapSnapshot(SnapshotFacts):
    """The bootstrap records as a snapshot of the lake."""

    metadata: BootstrapMetadata
    timestamp: int
    end_offset: int = 0
    epoch: int = 0
    last_contained_log_timestamp: int = 0

    def batches(self) -> Iterator[RecordBatch]:
        """Header, records, footer."""
        header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0)
        yield RecordBatch.control_of(0, 0, self.timestamp, [header])
        yield RecordBatch.of(1, 0, self.timestamp, self.metadata.records)
        footer = SnapshotFooterRecord(version=0)
        yield RecordBatch.control_of(len(self.metadata.records) + 1, 0, self.timestamp, [footer])


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
