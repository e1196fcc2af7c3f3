"""Changes of the finalized features."""

from __future__ import annotations

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION, FeaturesImage
from kraftlake.records.metadata_records import FeatureLevelRecord
from kraftlake.records.metadata_version import MINIMUM_OF_KAFKA_4, MetadataVersion, from_feature_level
from kraftlake.runtime.errors import ReplayError


class FeaturesDelta:
    """`changes` has the new level by feature, None for a removed one; metadata.version is separate."""

    def __init__(self, image: FeaturesImage) -> None:
        self.image = image
        self.changes: dict[str, int | None] = {}
        self.metadata_version_change: MetadataVersion | None = None

    def finish_snapshot(self) -> None:
        """Remove the features that the snapshot lacks; a metadata.version that it lacks stays."""
        drop_missing(self.image.finalized_versions, self.changes)

    def replay(self, record: FeatureLevelRecord) -> None:
        """Set a level; level 0 removes the feature, and kraft.version is ignored.

        ReplayError for a metadata.version that is unknown, or lower than the lowest that Kafka 4 loads.
        """
        if record.name == METADATA_VERSION:
            lowest = MINIMUM_OF_KAFKA_4
            if record.feature_level < lowest.level:
                raise ReplayError(
                    f"metadata.version {record.feature_level} is below {lowest.level} ({lowest}), the lowest that is "
                    f"replayed, as in Kafka 4: upgrade the cluster's metadata.version to {lowest} or later; the "
                    "records themselves can still be listed."
                )
            self.metadata_version_change = from_feature_level(record.feature_level)
        elif record.name != KRAFT_VERSION:
            self.changes[record.name] = record.feature_level or None

    def apply(self) -> FeaturesImage:
        """The image after the changes; the same object if there are none."""
        image = self.image
        levels = with_changes(image.finalized_versions, self.changes)
        version = self.metadata_version_change or image.metadata_version
        if levels is image.finalized_versions and version == image.metadata_version:
            return image
        return FeaturesImage(finalized_versions=levels, metadata_version=version)
