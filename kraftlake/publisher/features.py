"""The finalized feature levels."""

from __future__ import annotations

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.metadata_cache import finalized_features
from kraftlake.publisher.metadata_responses import FinalizedFeatures
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.log import get_logger


class FeaturesPublisher(MetadataPublisher):
    """Holds the latest levels and their offset. Source: org.apache.kafka.metadata.publisher."""

    name = "FeaturesPublisher"
    """Kafka's name of the publisher."""

    def __init__(self) -> None:
        self.features: FinalizedFeatures | None = None
        """The latest levels; None before the first."""
        self._log = get_logger(__name__)

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Store the levels if the delta has features; raises UnwritableMetadataError without a metadata.version."""
        if delta.features_delta is None:
            return
        features = finalized_features(new_image, dict(new_image.features.finalized_versions.items()))
        if self.features is None or features.levels != self.features.levels:
            self._log.info("loaded new features", levels=dict(features.levels), offset=features.epoch)
        self.features = features
